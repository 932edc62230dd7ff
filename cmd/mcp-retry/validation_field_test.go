package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// typedTool is a tool with an outputSchema.
func typedTool(name, outputSchema string, outcomes ...flaky.Outcome) flaky.Tool {
	tool := readTool(name, outcomes...)
	tool.Definition = flaky.Raw(`{"outputSchema":` + outputSchema + `}`)
	return tool
}

// structured is a result with this structuredContent.
func structured(value string) flaky.Outcome {
	return flaky.Outcome{Result: flaky.Raw(`{"content":[{"type":"text","text":"it"}],"structuredContent":` + value + `}`)}
}

const countSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

func TestABadResultIsWarnedOfOrRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		result   flaky.Outcome
		want     string // in the detail
		unusable bool   // whatever validate_results says
	}{
		{"another type", structured(`{"n":"one"}`), "/n", false},
		{"nothing where the schema wants something", flaky.Outcome{Text: "it"}, "structuredContent", false},
		{"no content", flaky.Outcome{Result: flaky.Raw(`{"content":"it"}`)}, "content", false},
		{"no object", flaky.Outcome{Result: flaky.Raw(`[1]`)}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := toolbox(always(typedTool("count", countSchema), c.result))
			f := startField(t, "validate_results: warn", script)
			f.open()
			f.call("1", "count", "{}")
			if c.unusable {
				f.failure("1", -31006)
			} else {
				if r := f.answer("1"); r.Error != nil {
					t.Errorf("warn refuses: %s", r.line)
				}
				if detail := f.logged("invalid_result").Detail; !strings.Contains(detail, c.want) {
					t.Errorf("the log says %q", detail)
				}
			}
			f = startField(t, "validate_results: enforce\nretry: {max_retries: 0}\ncache: {tools: {count: 3600}}", script)
			f.open()
			f.call("1", "count", "{}")
			f.failure("1", -31006)
			f.call("2", "count", "{}") // and it was not kept
			f.failure("2", -31006)
			f.attempts("count", 2)
		})
	}
}

func TestABadResultIsRetriedByARuleAndAGoodOneKept(t *testing.T) {
	t.Parallel()
	f := startField(t, `validate_results: enforce
retry: {max_retries: 3, base_delay: 1ms}
cache: {tools: {count: 3600}}
policy: [{when: 'error.kind == "malformed"', retry: true}]`,
		toolbox(typedTool("count", countSchema, structured(`{"n":"one"}`), structured(`{}`), structured(`{"n":3}`))))
	f.open()
	for _, id := range []string{"1", "2"} {
		f.call(id, "count", "{}")
		if r := f.success(id); !strings.Contains(string(r.Result), `"n":3`) {
			t.Errorf("got %s", r.line)
		}
	}
	f.attempts("count", 3)
}

func TestResultsAreHeldAgainstTheirRevision(t *testing.T) {
	t.Parallel()
	link := flaky.Outcome{Result: flaky.Raw(`{"content":[{"type":"resource_link","uri":"x://y","name":"y"}]}`)}  // since 2025-06-18
	audio := flaky.Outcome{Result: flaky.Raw(`{"content":[{"type":"audio","data":"","mimeType":"audio/wav"}]}`)} // since 2025-03-26
	for revision, good := range map[string][2]bool{
		"2024-11-05": {false, false}, "2025-03-26": {false, true}, "2025-06-18": {true, true}, "2025-11-25": {true, true},
	} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			script := toolbox(readTool("link", link), readTool("audio", audio), readTool("text"))
			script.Protocol = revision
			f := startField(t, "validate_results: enforce", script)
			f.open()
			for i, tool := range []string{"link", "audio"} {
				f.call(fmt.Sprint(i), tool, "{}")
				if good[i] {
					f.success(fmt.Sprint(i))
				} else {
					f.failure(fmt.Sprint(i), -31006)
				}
			}
		})
	}
}

func TestASchemaThatCannotBeUsedChecksNothingAndIsNotFollowed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	followed := make(chan struct{})
	go func() {
		if conn, err := l.Accept(); err == nil {
			conn.Close()
			close(followed)
		}
	}()
	for name, schema := range map[string]string{
		"a remote reference":  `{"type":"object","$ref":"http://` + l.Addr().String() + `/schema.json"}`,
		"a remote metaschema": `{"type":"object","$schema":"http://` + l.Addr().String() + `/schema.json"}`,
		"no schema":           `{"type":"colour"}`,
		"too large":           `{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := startField(t, "validate_results: enforce", toolbox(typedTool("count", schema, structured(`{"n":"one"}`))))
			f.open()
			f.call("1", "count", "{}")
			f.success("1")
			f.logged("unchecked_result")
		})
	}
	select {
	case <-followed:
		t.Error("a reference of a schema was followed")
	default:
	}
}
