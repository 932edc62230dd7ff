package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/bentabol/mcp-retry"

// homes says which packages may import a dependency, in code or in tests; each heavy one has a single home.
var homes = map[string][]string{
	"github.com/google/cel-go":               {"policy"},
	"cuelang.org/go":                         {"schema"},
	"github.com/spf13/cobra":                 {"cmd/mcp-retry"},
	"github.com/patrickmn/go-cache":          {"proxy/engine"},
	"golang.org/x/time":                      {"proxy/engine"},
	"go.yaml.in/yaml":                        {"schema"},
	"github.com/tailscale/hujson":            {"schema", "cmd/mcp-retry"}, // there it edits the files of clients, comments kept
	"github.com/prometheus":                  {"proxy/metrics"},
	"golang.org/x/sys":                       {"proxy"},
	"github.com/rogpeppe/go-internal":        {"cmd/mcp-retry"},
	"github.com/modelcontextprotocol/go-sdk": {"cmd/mcp-retry"},
	"github.com/google/jsonschema-go":        {"proxy"},
	"github.com/santhosh-tekuri/jsonschema":  {"schema", "cmd/mcp-retry"}, // in tests: its start alone costs 6 ms and 1.7 MB
}

// layers says what each package may import of the others: cmd → proxy → proxy/engine → policy → schema, never back.
var layers = map[string][]string{
	"schema":                  {},
	"policy":                  {"schema"},
	"proxy/jsonrpc":           {},
	"proxy/flaky":             {"proxy/jsonrpc"},
	"proxy/engine":            {"policy", "schema", "proxy/jsonrpc"},
	"proxy/compose":           {"schema", "proxy/engine", "proxy/jsonrpc"},
	"proxy":                   {"policy", "schema", "proxy/compose", "proxy/engine", "proxy/jsonrpc"},
	"proxy/metrics":           {"proxy/engine"},
	"policy/policytest/junit": {},
	"policy/policytest":       {"policy", "policy/policytest/junit", "schema", "proxy/engine"},
	"cmd/mcp-retry":           {"policy", "policy/policytest", "policy/policytest/junit", "schema", "proxy", "proxy/flaky", "proxy/metrics"},
}

func TestImportsRunOneWay(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...").Output()
	if err != nil {
		t.Skipf("go list is not available: %v", err)
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	for d.More() {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		allowed, known := layers[name]
		if !known {
			if !strings.HasPrefix(name, "examples") {
				t.Errorf("package %s is not in the table", name)
			}
			continue
		}
		for _, path := range p.Imports {
			if ours, ok := strings.CutPrefix(path, module+"/"); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s", name, ours)
			}
		}
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for dependency, at := range homes {
				if (path == dependency || strings.HasPrefix(path, dependency+"/")) && !slices.Contains(at, name) {
					t.Errorf("%s imports %s, whose home is %s", name, path, strings.Join(at, ", "))
				}
			}
		}
	}
}
