package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// hostileMemory is what a hostile server may make mcp-retry take, in KiB.
const hostileMemory = 512 << 10 * fieldLarger

// startHostile starts a session with a hostile server.
func startHostile(t *testing.T, list, settings string, flags ...string) *field {
	t.Helper()
	f := newField(t)
	config := fmt.Sprintf("servers:\n  hostile:\n    command: %q\n    args: [%s, %s]\n", fieldProgram(t), hostileCommand, list)
	for line := range strings.Lines(settings) {
		config += "    " + strings.TrimRight(line, "\n") + "\n"
	}
	f.launch(append([]string{"run", "--config", f.write("mcp-retry.yaml", config)}, flags...), nil, false)
	return f
}

// unharmed fails the test if the session does not answer the next call, or has taken too much memory.
func (f *field) unharmed() {
	f.t.Helper()
	f.pings++
	id := strconv.Itoa(1_000_000 + f.pings)
	f.call(id, "work", `{"n":`+id+`}`)
	f.success(id)
	if most := f.residentKiB("VmHWM"); most > hostileMemory {
		f.t.Errorf("mcp-retry took %d KiB", most)
	}
}

func TestSecurityAHostileServerCannotStopTheLoopOrFillTheMemory(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{
		"floods of notifications", "floods of progress", "floods of answers", "ids of a megabyte", "floods of lines", "deep frames", "9000 deep", "64 MiB",
	} {
		t.Run(tool, func(t *testing.T) {
			f := startHostile(t, "plain", "")
			f.open()
			f.call("1", tool, "{}")
			f.answer("1")
			f.unharmed()
		})
	}
}

// An answer that is nested deeper than any parser should follow ends its call at once.
func TestSecurityAnAnswerThatIsNestedWithoutEndIsAnError(t *testing.T) {
	t.Parallel()
	f := startHostile(t, "plain", "call_timeout: 3600\ntotal_timeout: 3601\nmax_call_time: 3602\n")
	f.open()
	f.call("1", "100000 deep", "{}")
	f.failure("1", -31006)
	f.unharmed()
}

// All that policy and the cache do with values is bounded too.
func TestSecurityDeepValuesAreJudgedWithoutHarm(t *testing.T) {
	t.Parallel()
	f := startHostile(t, "plain", `cache: {tools: {"*": 60}}
policy:
  - idempotency_key: 'string(size(args))'
    cache_key: '[args, tool.name]'
    cache_ttl: 'result.structuredContent.a[0].a[0] == result.content ? duration("1s") : duration("2s")'
  - breaker_failure: 'text(result).contains("x") || hash(result) == ""'
`)
	f.open()
	f.call("1", "9000 deep", `{}`)
	f.success("1")
	f.call("2", "work", `{"a":`+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)+`}`)
	f.success("2")
	f.mu.Lock()
	f.asked["3"]++ // what is sent is too deep for the test to count
	f.mu.Unlock()
	f.call("3", "work", `{"a":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`)
	f.failure("3", -32700)
	f.unharmed()
}

func TestSecurityAHostileListCannotStopTheLoopOrFillTheMemory(t *testing.T) {
	t.Parallel()
	for list, pages := range map[string]int{listMillion: 1, listEndless: 1000, listHuge: hugePages} {
		t.Run(list+"/asked by mcp-retry", func(t *testing.T) {
			f := startHostile(t, list, "validate_results: warn\n")
			f.greet()
			f.unharmed()
			for id := 1; ; id++ { // what the server has written before the answer has been dealt with then
				f.call(strconv.Itoa(id), "pages", `{"n":`+strconv.Itoa(id)+`}`)
				if n, _ := strconv.Atoi(f.success(strconv.Itoa(id)).text()); n >= pages {
					break
				}
			}
			f.unharmed()
		})
		t.Run(list+"/asked by the client", func(t *testing.T) {
			f := startHostile(t, list, "")
			f.greet()
			for id := range 3 {
				f.request(strconv.Itoa(id), "tools/list", `{"cursor":"`+strconv.Itoa(id)+`"}`)
				f.answer(strconv.Itoa(id))
			}
			f.unharmed()
		})
	}
}
