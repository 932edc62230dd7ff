package schema

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// compiled is the JSON Schema as a library that is not ours understands it.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	return understood(t, JSONSchema())
}

func understood(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON is a YAML text as an editor hands it to a JSON Schema.
func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestJSONSchemaAcceptsGoodFiles(t *testing.T) {
	s := compiled(t)
	files, _ := filepath.Glob("../examples/*/mcp-retry.yaml")
	good, _ := filepath.Glob("testdata/good/*.yaml")
	if files = append(files, good...); len(files) < 8 {
		t.Fatalf("only %d files", len(files))
	}
	for _, file := range files {
		if strings.Contains(file, "mcp-shield") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The file that mcp-shield's own documentation shows is completed and checked by a schema of its own, in mcp-shield's words.
func TestJSONSchemaOfMCPShieldsSpelling(t *testing.T) {
	s := understood(t, ShieldJSONSchema())
	for _, file := range []string{"../examples/mcp-shield/mcp-retry.yaml", "testdata/good/mcp-shield.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, text := range []string{
		"servers: {}",
		"servers: {a: {timeout: 30}}",
		"servers: {a: {command: x, timeout: 25h}}",
		"servers: {a: {command: x, retries: {max: 11}}}",
		"servers: {a: {command: x, timeout: 30, call_timeout: 30}}",
		"servers: {a: {command: x, retries: {max_retries: 1}}}",
		"servers: {a: {command: x, circuit_breaker: {threshold: 0}}}",
	} {
		if s.Validate(asJSON(t, []byte(text))) == nil {
			t.Errorf("accepted: %s", text)
		}
		if _, findings := Load("mcp-shield.yaml", []byte(text), testEnv); !findings.HasErrors() {
			t.Errorf("accepted by Load: %s", text)
		}
	}
}

func TestJSONSchemaRefusesBadFiles(t *testing.T) {
	s := compiled(t)
	for _, text := range []string{
		"{}",
		"servers: {a: {}}",
		"servers: {a: {command: x}}\nsever: {}",
		"servers: {' a': {command: x}}",
		"servers: {a: {command: ' '}}",
		"servers: {a: {command: x, args: -y}}",
		"servers: {a: {command: x, restart: sometimes}}",
		"servers: {a: {command: x, call_timeout: 0}}",
		"servers: {a: {command: x, call_timeout: soon}}",
		"servers: {a: {command: x, call_timeout: 86401}}",
		"servers: {a: {command: x, max_message_bytes: 64 MiB}}",
		"servers: {a: {command: x, retry: {max_retries: 11}}}",
		"servers: {a: {command: x, retry: {max_retries: 1.5}}}",
		"servers: {a: {command: x, retry: {max_retires: 1}}}",
		"servers: {a: {command: x, retry: {jitter: 1.1}}}",
		"servers: {a: {command: x, retry_budget: true}}",
		"servers: {a: {command: x, retry_budget: {ratio: 11}}}",
		"servers: {a: {command: x, rate_limit: {calls: 1}}}",
		"servers: {a: {command: x, cache: {tools: {'a b': 1}}}}",
		"servers: {a: {command: x, tools: {'a': {effects: some}}}}",
		"servers: {a: {command: x, policy: {retry: false}}}",
		"servers: {a: {command: x, policy: [{retry: 1}]}}",
		"servers: {a: {command: x, policy: [{retry: ' '}]}}",
		"servers: {a: {command: x, policy: [{idempotency_key: true}]}}",
		"servers: {a: {command: x, policy: [{invalidates: [{args: '{}'}]}]}}",
		"servers: {a: {command: x}}\ndefaults: {command: x}",
		"servers: {}",
		"servers: {a: {url: 'https://a.example/mcp'}}",
		"servers: {a: {command: x, url: 'https://a.example/mcp'}}",
		"servers: {a: {command: x, type: http}}",
		"servers: {a: {command: x, call_timeout: 0s}}",
		"servers: {a: {command: x, call_timeout: 0.0h0s}}",
		"servers: {a: {command: x, call_timeout: 25h}}",
		"servers: {a: {command: x, call_timeout: 86401s}}",
		"servers: {a: {command: x, call_timeout: 1441m}}",
		"servers: {a: {command: x, retry: {base_delay: 2h}}}",
		"servers: {a: {command: x, retry: {base_delay: 3601s}}}",
		"servers: {a: {command: x, idempotency_ttl: 721h}}",
		"servers: {a: {command: x, policy: [{cache_ttl: 1000h}]}}",
		"servers: {a: {command: x, policy: [{cache_ttl: '30'}]}}",
		"servers: {a: {command: x, policy: [{cache_ttl: 5 minutes}]}}",
		"servers: {a: {command: x, policy: [{retry_delay: -1s}]}}",
	} {
		if s.Validate(asJSON(t, []byte(text))) == nil {
			t.Errorf("accepted: %s", text)
		}
		if _, findings := Load("mcp-retry.yaml", []byte(text), testEnv); !findings.HasErrors() {
			t.Errorf("accepted by Load: %s", text)
		}
	}
}

// What an editor calls an error must be one for Load too, or the user is sent to mend what is right.
func TestJSONSchemaIsNoStricterThanLoad(t *testing.T) {
	s := compiled(t)
	for _, text := range []string{
		"servers: {a: {command: x, args: [-p, 8080, true], env: {PORT: 80, DEBUG: false}}}",
		"servers: {a: {command: x, policy: [{name: 1, when: true, retry: 'error.code == 1', cache_ttl: 30}]}}",
		"servers: {a: {command: x, policy: [{deny: '', breaker_scope: '', idempotency_key: null}, {idempotency_key: false}]}}",
		"servers: {a: {command: x, policy: [{invalidates: []}, {invalidates: [get_*, {tool: a, args: '{}'}]}, {invalidates: args.x}]}}",
		"servers: {a: {command: x, call_timeout: 1m30s, retry: {jitter: true}, retry_budget: false}}",
		"servers: {a: {command: x, type: stdio, headers: {}, call_timeout: 23h, total_timeout: 86400, max_call_time: 1440m}}",
		"servers: {a: {command: x, call_timeout: 00023h59m, total_timeout: 24h, retry: {base_delay: 0s, max_delay: 3600s}}}",
		"servers: {a: {command: x, call_timeout: 999ms, idempotency_ttl: 2592000s, policy: [{cache_ttl: 720h}, {cache_ttl: 'args.n * 30'}]}}",
		"servers: {a: {command: x, policy: [{call_timeout: '30 + 1'}, {cache_ttl: 'duration(\"1s\")'}]}}",
		"x-base: &b {call_timeout: 5}\nservers: {a: {<<: *b, command: x}}",
	} {
		if _, findings := Load("mcp-retry.yaml", []byte(text), testEnv); findings.HasErrors() {
			t.Errorf("%s: %v", text, findings)
		}
		if err := s.Validate(asJSON(t, []byte(text))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// An editor shows what a key means where it is typed.
func TestEveryKeyOfTheJSONSchemaIsDescribed(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(JSONSchema(), &doc); err != nil {
		t.Fatal(err)
	}
	count := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok {
				for name, p := range properties {
					count++
					if m, _ := p.(map[string]any); m["description"] == nil {
						t.Errorf("%s.%s has no description", path, name)
					}
				}
			}
			for k, x := range v {
				walk(path+"/"+k, x)
			}
		case []any:
			for _, x := range v {
				walk(path, x)
			}
		}
	}
	walk("", doc)
	if count < 70 {
		t.Errorf("only %d keys", count)
	}
}

func TestTheDefaultsOfTheJSONSchemaAreThoseOfTheProgram(t *testing.T) {
	s := compiled(t)
	if err := s.Validate(asJSON(t, []byte("servers: {a: {command: x}}"))); err != nil {
		t.Fatal(err)
	}
	g := generator{docs: readDocs(ours.text)}
	stated := map[string]string{}
	for path, text := range g.docs.about {
		if _, after, ok := strings.Cut(text, "Default "); ok {
			stated[path] = strings.TrimRight(strings.Fields(after)[0], ".,;")
		}
	}
	for path, want := range stated {
		i := strings.LastIndexByte(path, '.')
		v, ok := defaultOf(path[:i], path[i+1:])
		if got, err := json.Marshal(v); ok && (err != nil || strings.Trim(string(got), `"`) != want) {
			t.Errorf("%s: the comment says %s, the program %s", path, want, got)
		}
	}
	if len(stated) < 10 {
		t.Errorf("only %d comments state a default", len(stated))
	}
}
