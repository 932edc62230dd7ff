package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestRealServerIsReadThroughTheCache: what was read is not read again until something was written, and fresh then.
func TestRealServerIsReadThroughTheCache(t *testing.T) {
	needServers(t)
	t.Parallel()
	at := newPlace(t)
	at.write(t, "a.txt", "one\n")
	at.write(t, "b.txt", "b\n")
	w := dial(t, throughRun, filesystemServer, at, map[string]any{
		"policy": []any{
			map[string]any{"name": "reads", "when": `tool.readOnly && glob(tool.name, "read_*")`, "cache_ttl": "1h"},
			map[string]any{"name": "sizes", "when": `tool.name == "get_file_info"`, "cache_ttl": 3600, "cache_key": "args.path"},
			map[string]any{"name": "precise", "when": `tool.name == "edit_file"`, "invalidates": []any{
				map[string]any{"tool": "read_*", "args": "pick(args, ['path'])"},
			}},
			map[string]any{"name": "harmless", "when": `tool.name == "create_directory"`, "invalidates": []any{}},
		},
	})
	w.open(newest, "{}")
	w.do("tools/list", "{}")
	read := func(name, want string, sends int) {
		t.Helper()
		got := w.call("read_file", fmt.Sprintf(`{"path":%q}`, at.dir+"/"+name))
		if !strings.Contains(got, fmt.Sprintf(`"structuredContent":{"content":%q}`, want)) {
			t.Errorf("%s: %s, want %q", name, got, want)
		}
		if n := at.sends(t, "read_file"); n != sends {
			t.Errorf("read_file was sent %d times, want %d", n, sends)
		}
	}
	tell := func(tool, arguments string) {
		t.Helper()
		if got := w.call(tool, strings.ReplaceAll(arguments, "DIR", at.dir)); !strings.HasPrefix(got, "result ") || strings.Contains(got, `"isError":true`) {
			t.Errorf("%s: %s", tool, got)
		}
	}
	read("a.txt", "one\n", 1)
	read("a.txt", "one\n", 1)
	read("b.txt", "b\n", 2)
	tell("write_file", `{"path":"DIR/a.txt","content":"two\n"}`) // makes everything stale, as the built-in policy has it
	read("a.txt", "two\n", 3)
	read("a.txt", "two\n", 3)
	read("b.txt", "b\n", 4)
	tell("create_directory", `{"path":"DIR/sub"}`) // makes nothing stale, as the config has it
	read("a.txt", "two\n", 4)
	tell("edit_file", `{"path":"DIR/a.txt","edits":[{"oldText":"two","newText":"three"}]}`) // only that file
	read("a.txt", "three\n", 5)
	read("b.txt", "b\n", 5)
	for range 2 {
		tell("list_directory", `{"path":"DIR"}`) // of which the config says nothing
	}
	if n := at.sends(t, "list_directory"); n != 2 {
		t.Errorf("list_directory was sent %d times, want 2", n)
	}
	for _, name := range []string{"none.txt", "none.txt"} { // errors are not kept
		if got := w.call("read_file", fmt.Sprintf(`{"path":%q}`, at.dir+"/"+name)); !strings.Contains(got, `"isError":true`) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if n := at.sends(t, "read_file"); n != 7 {
		t.Errorf("read_file was sent %d times, want 7", n)
	}
	w.kill()
	read("b.txt", "b\n", 7) // needs no server
	w.close()
}

// TestRealServerIsSparedWhatPolicyDenies: such a call is answered without it.
func TestRealServerIsSparedWhatPolicyDenies(t *testing.T) {
	needServers(t)
	t.Parallel()
	at := newPlace(t)
	at.write(t, "secret/a.txt", "x")
	w := dial(t, throughRun, filesystemServer, at, map[string]any{
		"tool_filter": map[string]any{"deny": []any{"move_*", "edit_file"}},
		"policy": []any{
			map[string]any{"name": "secrets", "when": `has(args.path)`, "deny": `args.path.contains("/secret") ? "secret" : ""`},
		},
	})
	w.open(newest, "{}")
	w.do("tools/list", "{}")
	for tool, arguments := range map[string]string{
		"read_file": fmt.Sprintf(`{"path":%q}`, at.dir+"/secret/a.txt"),
		"move_file": `{"source":"a","destination":"b"}`,
	} {
		if got := w.call(tool, arguments); !strings.HasPrefix(got, `error {"code":-31005`) {
			t.Errorf("%s: %s, want -31005", tool, got)
		}
		if n := at.sends(t, tool); n != 0 {
			t.Errorf("%s was sent %d times", tool, n)
		}
	}
	w.close()
}

// TestRealServerAnswersOnceForIdenticalCalls that are in flight together: each caller has the answer under its own id.
func TestRealServerAnswersOnceForIdenticalCalls(t *testing.T) {
	needServers(t)
	t.Parallel()
	w := dial(t, throughWrap, everythingServer, newPlace(t), nil)
	w.open(newest, "{}")
	w.do("tools/list", "{}")
	var answers []func() message
	for range 5 {
		_, answer := w.begin("tools/call", callOf("trigger-long-running-operation", `{"duration":1,"steps":2}`))
		answers = append(answers, answer)
	}
	for _, answer := range answers {
		if got := answer().outcome(); !strings.Contains(got, "operation completed") {
			t.Error(got)
		}
	}
	w.close()
	if n := w.at.sends(t, "trigger-long-running-operation"); n != 1 {
		t.Errorf("sent %d times, want once", n)
	}
}

// TestRealServerIsTimedOut: an attempt that takes too long is cancelled at the server, and progress keeps one alive.
func TestRealServerIsTimedOut(t *testing.T) {
	needServers(t)
	t.Parallel()
	w := dial(t, throughRun, everythingServer, newPlace(t), map[string]any{
		"tools": map[string]any{"trigger-*": map[string]any{"call_timeout": "3s", "retry": map[string]any{"max_retries": 0}}},
	})
	w.open(newest, "{}")
	w.do("tools/list", "{}")
	if got := w.call("trigger-long-running-operation", `{"duration":60,"steps":1}`); !strings.HasPrefix(got, `error {"code":-31001`) {
		t.Errorf("outcome %s, want -31001", got)
	}
	const busy = `{"name":"trigger-long-running-operation","arguments":{"duration":5,"steps":50},"_meta":{"progressToken":1}}`
	if got := w.do("tools/call", busy); !strings.HasPrefix(got, "result ") {
		t.Errorf("with progress: %s", got)
	}
	w.close()
	if n := w.at.sends(t, "notifications/cancelled"); n != 1 {
		t.Errorf("%d cancellations, want 1", n)
	}
}

// TestRealServerThatStaysIsEnded: server-everything lives on for a minute after its client has gone if that had roots. A client
// of mcp-retry need not wait for it.
func TestRealServerThatStaysIsEnded(t *testing.T) {
	needServers(t)
	for _, r := range proxied {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			w := dial(t, r, everythingServer, newPlace(t), nil)
			w.answer("roots/list", "") // which keeps it waiting
			w.open(newest, `{"roots":{}}`)
			w.awaitMethod("roots/list")
			w.close()
		})
	}
}
