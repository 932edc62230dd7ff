package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// What a converted file decides of a call is what the file decided: how long, how often, after which waits, and when the server is
// left alone.
func TestAConvertedConfigDecidesTheSame(t *testing.T) {
	files, err := filepath.Glob("../../schema/testdata/convert/*.*")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		name := filepath.Base(file)
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		after, findings := schema.Convert(name, before)
		if after == nil {
			t.Fatal(findings)
		}
		for _, tool := range []string{"plain", "get_x", "get_file_contents", "search_repositories", "it's", "x", "other"} {
			a, b := decided(t, name, before, tool), decided(t, name, after, tool)
			for server := range a {
				if !reflect.DeepEqual(a[server], b[server]) {
					t.Errorf("%s: %s of %s: it was\n%+v\nand is\n%+v", name, tool, server, a[server], b[server])
				}
			}
		}
	}
}

// decided is what a config decides of a call of a tool, by server.
func decided(t *testing.T, file string, text []byte, tool string) map[string]policy.Before {
	t.Helper()
	cfg, findings := schema.Load(file, text, func(string) (string, bool) { return "x", true })
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	all := map[string]policy.Before{}
	for _, server := range cfg.Servers {
		compiled, findings := policy.Compile(server)
		if findings.HasErrors() {
			t.Fatal(findings)
		}
		var b policy.Before
		call := policy.Call{Tool: policy.Tool{Name: tool}, Server: &policy.Peer{Name: server.Name}, Client: &policy.Peer{}}
		compiled.For(tool).Before(&call, &b)
		if len(call.Errors) > 0 {
			t.Fatal(call.Errors)
		}
		all[server.Name] = b
	}
	return all
}
