//go:build unix

package proxy

import (
	"errors"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/schema"
)

func TestParseRefusesWhatRunRefuses(t *testing.T) {
	t.Setenv("SET", "yes")
	for name, c := range map[string]struct{ config, server, want string }{
		"a misspelt key":           {"servers: {a: {command: x, call_timeot: 3}}", "", "call_timeout"},
		"a faulty expression":      {"servers: {a: {command: x, policy: [{when: 'tool.nam == 1', retry: false}]}}", "", `"nam"`},
		"a variable that is unset": {"servers: {a: {command: x, env: {K: '${UNSET_VARIABLE}'}}}", "", "UNSET_VARIABLE"},
		"a server that is missing": {"servers: {a: {command: x}}", "b", `no server "b" in test.yaml`},
		"no servers":               {"", "", "servers"},
		"no YAML":                  {"{", "", "syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("test.yaml", []byte(c.config), c.server)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error that names %q, got %v", c.want, err)
			}
			var faulty *ConfigError
			if errors.As(err, &faulty) && len(faulty.Findings) == 0 {
				t.Error("an error about the config without a finding")
			}
		})
	}
	o, err := Parse("test.yaml", []byte("servers: {a: {command: '${SET}'}}"), "")
	if err != nil || o.Server.Command != "yes" || o.Policy == nil {
		t.Errorf("a sound config: %+v, %v", o, err)
	}
}

func TestParseTakesAllServersWhereNoneIsNamed(t *testing.T) {
	o, err := Parse("test.yaml", []byte("servers: {b: {command: x}, a: {command: y}}"), "")
	if err != nil || o.Server != nil || len(o.Servers) != 2 || o.Servers[0].Server.Name != "b" || o.Servers[1].Policy == nil {
		t.Fatalf("got %+v, %v", o, err)
	}
	if _, err := New(o); err != nil {
		t.Error(err)
	}
}

func TestNewRefusesAServerWithoutItsDefaults(t *testing.T) {
	for name, s := range map[string]*schema.Server{
		"made by hand": {Name: "x", Command: "cat"},
		"no command":   schema.Wrap("x", nil, schema.WrapOptions{}).Servers[0],
		"no name":      schema.Wrap("", []string{"cat"}, schema.WrapOptions{}).Servers[0],
		"none":         nil,
	} {
		if _, err := New(Options{Server: s}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNewCompilesWhatIsNotCompiled(t *testing.T) {
	if _, err := New(Options{Server: schema.Wrap("x", []string{"cat"}, schema.WrapOptions{}).Servers[0]}); err != nil {
		t.Error(err)
	}
	broken := schema.Wrap("x", []string{"cat"}, schema.WrapOptions{}).Servers[0]
	broken.Rules = append(broken.Rules, schema.Rule{Name: "bad", When: &schema.Expr{Text: "nothing =="}})
	var faulty *ConfigError
	if _, err := New(Options{Server: broken}); !errors.As(err, &faulty) {
		t.Errorf("a broken rule: %v", err)
	}
}
