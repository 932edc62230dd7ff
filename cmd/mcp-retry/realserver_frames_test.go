package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const newest = "2025-11-25" // the newest revision that the servers speak

// TestRealHandshakes opens a session of each revision with each server.
func TestRealHandshakes(t *testing.T) {
	for _, s := range []realServer{everythingServer, filesystemServer, memoryServer} {
		for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", newest, "2026-07-28", "1999-01-01"} {
			t.Run(s.name+"/"+version, func(t *testing.T) {
				sameOnAllRoutes(t, s, nil, func(w *wire) {
					w.note("initialize", w.open(version, "{}"))
					w.try("ping", "")
					w.try("tools/list", "{}")
					w.try("ping", "{}")
				})
			})
		}
	}
}

// TestRealServerEverything sends server-everything one of each.
func TestRealServerEverything(t *testing.T) {
	volatile := regexp.MustCompile(`created at [0-9:]+ [AP]M|"blob":"[^"]*"`)
	sameOnAllRoutes(t, everythingServer, volatile, func(w *wire) {
		w.note("initialize", w.open(newest, `{"experimental":{"x":{"y":[1.0,1e2]}}}`))
		w.try("tools/list", `{}`)
		w.try("tools/list", `{"cursor":"nowhere"}`)
		for _, c := range [][2]string{
			{"echo", `{"message":"plain"}`},
			{"echo", `{"message":"\u00fc \ud83d\ude00 \u0000 \/ \" <&> \u2028 é 😀"}`},
			{"echo", ` { "message" : "spaces" , "message2" : [ 1.0 , 1e2 , -0 ] } `},
			{"echo", `{"message":""}`},
			{"echo", `{"message":` + fmt.Sprintf("%q", strings.Repeat("0123456789", 200_000)) + `}`},
			{"echo", `{}`},
			{"echo", `{"message":7}`},
			{"no-such-tool", `{}`},
			{"", `{}`},
			{"get-annotated-message", `{"messageType":"error"}`},
			{"get-annotated-message", `{"messageType":"debug","includeImage":true}`},
			{"get-annotated-message", `{"messageType":"none"}`},
			{"get-resource-links", `{"count":10}`},
			{"get-resource-links", `{"count":11}`},
			{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`},
			{"get-resource-reference", `{"resourceType":"Blob","resourceId":2}`},
			{"get-resource-reference", `{"resourceType":"Blob","resourceId":-1}`},
			{"get-structured-content", `{"location":"Chicago"}`},
			{"get-structured-content", `{"location":"Nowhere"}`},
			{"get-sum", `{"a":1,"b":2.5}`},
			{"get-sum", `{"a":12345678901234567890,"b":1e300}`},
			{"get-sum", `{"a":"1","b":2}`},
			{"get-tiny-image", `{}`},
			{"gzip-file-as-resource", `{"name":"a.gz","data":"data:text/plain,hello","outputType":"resource"}`},
			{"gzip-file-as-resource", `{"name":"a.gz","data":"data:text/plain,hello","outputType":"resourceLink"}`},
			{"gzip-file-as-resource", `{"name":"a.gz","data":"ftp://localhost/x"}`},
			{"trigger-long-running-operation", `{"duration":0.05,"steps":2}`},
			{"trigger-sampling-request", `{"prompt":"not offered to a client that cannot"}`},
			{"simulate-research-query", `{"topic":"called without a task"}`},
		} {
			w.tryCall(c[0], c[1])
		}
		w.try("tools/call", `{"name":"get-tiny-image"}`)
		w.try("tools/call", `{"name":"echo","arguments":{"message":"m"},"_meta":{"x.example/y":{"z":1.50}},"unknown":null}`)
		w.try("resources/list", `{}`)
		w.try("resources/templates/list", "")
		w.try("resources/read", `{"uri":"demo://resource/static/document/instructions.md"}`)
		w.try("resources/read", `{"uri":"demo://resource/session/a.gz"}`)
		w.try("resources/read", `{"uri":"demo://resource/dynamic/text/3"}`)
		w.try("resources/read", `{"uri":"demo://resource/dynamic/blob/3"}`)
		w.try("resources/read", `{"uri":"demo://resource/dynamic/text/x"}`)
		w.try("resources/read", `{"uri":"demo://nothing"}`)
		w.try("resources/read", `{}`)
		w.try("prompts/list", `{}`)
		w.try("prompts/get", `{"name":"simple-prompt"}`)
		w.try("prompts/get", `{"name":"args-prompt","arguments":{"city":"Athens","state":"GA"}}`)
		w.try("prompts/get", `{"name":"args-prompt","arguments":{}}`)
		w.try("prompts/get", `{"name":"completable-prompt","arguments":{"department":"Sales","name":"Eve"}}`)
		w.try("prompts/get", `{"name":"resource-prompt","arguments":{"resourceType":"Text","resourceId":"1"}}`)
		w.try("prompts/get", `{"name":"no-such-prompt"}`)
		w.try("completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"S"}}`)
		w.try("completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"name","value":""},"context":{"arguments":{"department":"Sales"}}}`)
		w.try("completion/complete", `{"ref":{"type":"ref/resource","uri":"demo://resource/dynamic/text/{resourceId}"},"argument":{"name":"resourceId","value":"1"}}`)
		w.try("completion/complete", `{"ref":{"type":"ref/prompt","name":"nope"},"argument":{"name":"x","value":""}}`)
		w.try("logging/setLevel", `{"level":"warning"}`)
		w.try("logging/setLevel", `{"level":"loud"}`)
		w.try("resources/subscribe", `{"uri":"demo://resource/dynamic/text/1"}`)
		w.try("resources/unsubscribe", `{"uri":"demo://resource/dynamic/text/1"}`)
		w.try("tasks/list", `{}`)
		w.try("tasks/get", `{"taskId":"none"}`)
		w.try("tasks/result", `{"taskId":"none"}`)
		w.try("tasks/cancel", `{"taskId":"none"}`)
		w.try("server/discover", `{"_meta":{}}`)
		w.try("no/such/method", `{"a":[1,2,{"b":null}]}`)
		w.try("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"again","version":"1"}}`)
	})
}

// TestRealServerErrorIsTriedAgainAndReachesTheClient: an internal error is transient by the built-in policy. After the last
// attempt the client has the server's own error, byte for byte.
func TestRealServerErrorIsTriedAgainAndReachesTheClient(t *testing.T) {
	needServers(t)
	t.Parallel()
	plain := dial(t, direct, everythingServer, newPlace(t), nil)
	plain.open(newest, "{}")
	want := plain.call("echo", "null") // which this server calls an internal error
	plain.close()
	w := dial(t, throughRun, everythingServer, newPlace(t), map[string]any{"retry": map[string]any{"max_retries": 2, "base_delay": 0.001}})
	w.open(newest, "{}")
	if got := w.call("echo", "null"); got != want || !strings.HasPrefix(got, `error {"code":-32603`) {
		t.Errorf("through mcp-retry: %s\nwithout it:        %s", got, want)
	}
	w.close()
	if n := w.at.sends(t, "echo"); n != 3 {
		t.Errorf("the call was sent %d times, want 3", n)
	}
}

// TestRealServerEnvironment: through a proxy a server has the environment that the client gave it, and its own from the config.
func TestRealServerEnvironment(t *testing.T) {
	sameOnAllRoutes(t, everythingServer, nil, func(w *wire) {
		w.open(newest, "{}")
		w.do("tools/list", "{}")
		var result struct{ Content []struct{ Text string } }
		outcome := strings.TrimPrefix(w.call("get-env", "{}"), "result ")
		if err := json.Unmarshal([]byte(outcome), &result); err != nil {
			w.t.Fatal(err)
		}
		var env map[string]string
		if err := json.Unmarshal([]byte(result.Content[0].Text), &env); err != nil {
			w.t.Fatal(err)
		}
		delete(env, productEnv)
		delete(env, serversEnv)
		sorted, _ := json.MarshalIndent(env, "", " ") // their order is nobody's business
		w.note("get-env", string(sorted))
	})
}

// TestRealServerFilesystem calls each tool of server-filesystem.
func TestRealServerFilesystem(t *testing.T) {
	volatile := regexp.MustCompile(`created: .*?\\n|accessed: .*?\\n|modified: .*?\\n`)
	sameOnAllRoutes(t, filesystemServer, volatile, func(w *wire) {
		w.at.write(w.t, "a.txt", "one\ntwo\nthree\n")
		w.at.write(w.t, "deep/b.txt", "b ü \U0001F600\r\n\x00\x1f</script>")
		w.at.write(w.t, "tiny.png", "\x89PNG\r\n\x1a\n")
		w.at.write(w.t, "large.txt", strings.Repeat("a line of text that is not too short\n", 100_000))
		w.note("initialize", w.open(newest, "{}"))
		w.try("tools/list", "{}")
		dir := w.at.dir
		for _, c := range [][2]string{
			{"list_allowed_directories", `{}`},
			{"read_file", `{"path":"DIR/a.txt"}`},
			{"read_text_file", `{"path":"DIR/a.txt","head":2}`},
			{"read_text_file", `{"path":"DIR/a.txt","tail":1}`},
			{"read_text_file", `{"path":"DIR/a.txt","tail":1,"head":1}`},
			{"read_text_file", `{"path":"DIR/deep/b.txt"}`},
			{"read_text_file", `{"path":"DIR/large.txt"}`},
			{"read_text_file", `{"path":"DIR/none.txt"}`},
			{"read_text_file", `{"path":"/etc/passwd"}`},
			{"read_text_file", `{}`},
			{"read_media_file", `{"path":"DIR/tiny.png"}`},
			{"read_multiple_files", `{"paths":["DIR/a.txt","DIR/none.txt","DIR/deep/b.txt"]}`},
			{"read_multiple_files", `{"paths":[]}`},
			{"write_file", `{"path":"DIR/new.txt","content":"written \u00fc\n"}`},
			{"edit_file", `{"path":"DIR/a.txt","edits":[{"oldText":"two","newText":"TWO"}],"dryRun":true}`},
			{"edit_file", `{"path":"DIR/a.txt","edits":[{"oldText":"two","newText":"TWO"}]}`},
			{"edit_file", `{"path":"DIR/a.txt","edits":[{"oldText":"two","newText":"TWO"}]}`},
			{"create_directory", `{"path":"DIR/made/twice"}`},
			{"create_directory", `{"path":"DIR/made/twice"}`},
			{"list_directory", `{"path":"DIR"}`},
			{"list_directory_with_sizes", `{"path":"DIR","sortBy":"size"}`},
			{"directory_tree", `{"path":"DIR"}`},
			{"move_file", `{"source":"DIR/new.txt","destination":"DIR/made/moved.txt"}`},
			{"move_file", `{"source":"DIR/new.txt","destination":"DIR/made/moved.txt"}`},
			{"search_files", `{"path":"DIR","pattern":"**/*.txt"}`},
			{"get_file_info", `{"path":"DIR/deep/b.txt"}`},
			{"no_such_tool", `{}`},
		} {
			w.tryCall(c[0], strings.ReplaceAll(c[1], "DIR", dir))
		}
		w.note("a.txt", w.at.read(w.t, "a.txt"))
		w.note("moved.txt", w.at.read(w.t, "made/moved.txt"))
	})
}

// TestRealServerMemory calls each tool of server-memory, and follows its one resource.
func TestRealServerMemory(t *testing.T) {
	sameOnAllRoutes(t, memoryServer, nil, func(w *wire) {
		w.note("initialize", w.open(newest, "{}"))
		w.try("tools/list", "{}")
		w.try("resources/list", "{}")
		w.try("resources/subscribe", `{"uri":"memory://knowledge-graph"}`)
		for _, c := range [][2]string{
			{"create_entities", `{"entities":[{"name":"ada","entityType":"person","observations":["counts"]},{"name":"engine","entityType":"thing","observations":[]}]}`},
			{"create_entities", `{"entities":[{"name":"ada","entityType":"person","observations":[]}]}`},
			{"create_entities", `{"entities":[{"name":"ada"}]}`},
			{"create_relations", `{"relations":[{"from":"ada","to":"engine","relationType":"programs"}]}`},
			{"add_observations", `{"observations":[{"entityName":"ada","contents":["writes","rides"]}]}`},
			{"add_observations", `{"observations":[{"entityName":"nobody","contents":["x"]}]}`},
			{"read_graph", `{}`},
			{"search_nodes", `{"query":"engine"}`},
			{"open_nodes", `{"names":["ada","nobody"]}`},
			{"delete_observations", `{"deletions":[{"entityName":"ada","observations":["rides"]}]}`},
			{"delete_relations", `{"relations":[{"from":"ada","to":"engine","relationType":"programs"}]}`},
			{"delete_entities", `{"entityNames":["engine"]}`},
			{"delete_entities", `{"entityNames":["engine"]}`},
			{"read_graph", `{}`},
			{"no_such_tool", `{}`},
		} {
			w.tryCall(c[0], c[1])
		}
		w.try("resources/read", `{"uri":"memory://knowledge-graph"}`)
		for _, m := range w.received("notifications/resources/updated") {
			w.note(m.Method, string(m.Params))
		}
		w.try("resources/unsubscribe", `{"uri":"memory://knowledge-graph"}`)
		w.tryCall("delete_entities", `{"entityNames":["ada"]}`)
		w.note("updates", fmt.Sprint(len(w.received("notifications/resources/updated"))))
		w.note("the file", w.at.read(w.t, "memory.jsonl"))
	})
}
