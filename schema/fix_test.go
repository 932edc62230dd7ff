package schema

import (
	"bytes"
	"testing"
)

func TestMend(t *testing.T) {
	const head = "servers:\n  a:\n    command: x\n    "
	for _, test := range []struct{ name, file, before, after string }{ // after "" = unchanged
		{"a key", "a.yaml", head + "retry: {max_retires: 5}  # five\n", head + "retry: {max_retries: 5}  # five\n"},
		{"a key in quotes", "a.yaml", head + "'call_timout': 5\n", head + "'call_timeout': 5\n"},
		{"a key spelled in another way", "a.yaml", head + "callTimeout: 5\n", head + "call_timeout: 5\n"},
		{"a client's name for servers", "a.json", `{"mcpServers": {"a": {"command": "x"}}}`, `{"servers": {"a": {"command": "x"}}}`},
		{"a key that is there already", "a.yaml", head + "call_timeout: 5\n    call_timout: 6\n", ""},
		{"two keys for one", "a.yaml", head + "call_timout: 5\n    call_timeoutt: 6\n", ""},
		{"a name with another meaning", "a.yaml", head + "retry: {max_attempts: 3}\n", ""},
		{"a key that belongs elsewhere", "a.yaml", head + "tool: {}\n", ""},
		{"a key that is too far off", "a.yaml", head + "limits: {calls: 3, per: 1}\n", ""},
		{"a number in quotes", "a.yaml", head + "retry: {max_retries: '3'}\n", head + "retry: {max_retries: 3}\n"},
		{"a duration in quotes", "a.yaml", head + "call_timeout: \"30\"\n", head + "call_timeout: 30\n"},
		{"a unit in words", "a.yaml", head + "call_timeout: 2 minutes\n", head + "call_timeout: 2m\n"},
		{"a unit that is too large", "a.yaml", head + "idempotency_ttl: '1d'\n", head + "idempotency_ttl: '24h'\n"},
		{"M may be months or minutes", "a.yaml", head + "call_timeout: 5M\n", ""},
		{"a size", "a.yaml", head + "max_message_bytes: 64 mb\n", head + "max_message_bytes: 64MB\n"},
		{"yes", "a.yaml", head + "trust_annotations: no\n", head + "trust_annotations: false\n"},
		{"no, in a rule", "a.yaml", head + "policy: [{when: on, retry: no}]\n", head + "policy: [{when: true, retry: false}]\n"},
		{"a key of another tool's", "a.yaml", head + "retry: {max_retry: 3}\n", head + "retry: {max_retries: 3}\n"},
		{"a short key", "a.yaml", head + "policy: [{wen: 'true', retry: false}]\n", head + "policy: [{when: 'true', retry: false}]\n"},
		{"a star in a list", "a.yaml", head + "tool_filter: {deny: [*, x]}\n", head + "tool_filter: {deny: [\"*\", x]}\n"},
		{"a star beside an anchor", "a.yaml", head + "tool_filter: {deny: [&a x, *]}\n", head + "tool_filter: {deny: [&a x, \"*\"]}\n"},
		{"a star where anchors are", "a.yaml", head + "tool_filter: {deny: [&a x, *b]}\n", ""},
		{"an exclamation mark", "a.yaml", head + "policy:\n      - when: !tool.annotated # mine\n        retry: false\n", head + "policy:\n      - when: '!tool.annotated' # mine\n        retry: false\n"},
		{"an exclamation mark before more", "a.yaml", head + "policy:\n      - retry: false\n        when: !tool.annotated && args.a == \"b\"\n", head + "policy:\n      - retry: false\n        when: '!tool.annotated && args.a == \"b\"'\n"},
		{"an exclamation mark before more lines", "a.yaml", head + "policy:\n      - retry: false\n        when: !tool.annotated\n          && args.a\n", ""},
		{"an exclamation mark before the value", "a.yaml", "servers: !a\nfoo\n", ""},
		{"an exclamation mark in braces", "a.yaml", head + "policy: [{when: !tool.annotated, retry: false}]\n", ""},
		{"an exclamation mark after an anchor", "a.yaml", head + "policy:\n      - when: &x !tool.annotated\n        retry: false\n", ""},
		{"a variable in braces", "a.yaml", head + "env: {A: ${HOME}, B: x}\n", head + "env: {A: \"${HOME}\", B: x}\n"},
		{"a variable in a list", "a.yaml", head + "args: [a/${HOME}/${SET}.d]\n", head + "args: [\"a/${HOME}/${SET}.d\"]\n"},
		{"a word", "a.yaml", head + "retry: {backoff: exponental}\n", head + "retry: {backoff: exponential}\n"},
		{"a leading zero", "a.yaml", head + "retry: {max_retries: 03}\n", ""},
		{"out of bounds", "a.yaml", head + "retry: {max_retries: 99}\n", ""},
		{"mcp-shield's key among ours", "a.yaml", head + "timeout: 5\n    restart: never\n", head + "call_timeout: 5\n    restart: never\n"},
		{"JSON", "a.json", "{\"servers\": {\"a\": {\"command\": \"x\", // it\n\"call_timout\": \"30\", \"restart\": \"nevr\"}}}", "{\"servers\": {\"a\": {\"command\": \"x\", // it\n\"call_timeout\": 30, \"restart\": \"never\"}}}"},
		{"CUE", "a.cue", "servers: a: {\n\tcommand: \"x\"\n\tcall_timeout: \"30\" // half a minute\n}\n", "servers: a: {\n\tcommand: \"x\"\n\tcall_timeout: 30 // half a minute\n}\n"},
		{"a value that CUE computes", "a.cue", "n: \"30\"\nservers: a: {\n\tcommand: \"x\"\n\tcall_timeout: n\n}\n", ""},
		{"wide characters before it", "a.yaml", "servers:\n  日本: {command: x, args: [日本語], call_timout: 5}\n", "servers:\n  日本: {command: x, args: [日本語], call_timeout: 5}\n"},
		{"a byte order mark and CRLF", "a.yaml", "\ufeffservers:\r\n  a:\r\n    command: x\r\n    call_timout: 5\r\n", "\ufeffservers:\r\n  a:\r\n    command: x\r\n    call_timeout: 5\r\n"},
		{"an anchor", "a.yaml", "servers:\n  a: &a {command: x, call_timout: 5}\n  b: *a\n", "servers:\n  a: &a {command: x, call_timeout: 5}\n  b: *a\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, findings := Load(test.file, []byte(test.before), testEnv)
			if len(findings) == 0 {
				t.Fatal("no findings")
			}
			want := test.after
			if want == "" {
				want = test.before
			}
			got, corrected := findings.Mend([]byte(test.before))
			if string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if (len(corrected) > 0) != (test.after != "") {
				t.Errorf("corrected: %v", corrected)
			}
		})
	}
}

// What was corrected is no finding any more, and what was right stays so.
func TestMendedFilesHaveNoNewFaults(t *testing.T) {
	before := []byte("servers:\n  a:\n    command: x\n    retry: {max_retires: \"3\", backof: linaer}\n    call_timeout: 30 sec\n")
	text := before
	for range 3 {
		_, findings := Load("a.yaml", text, testEnv)
		text, _ = findings.Mend(text)
	}
	if _, findings := Load("a.yaml", text, testEnv); len(findings) > 0 {
		t.Errorf("%v\n%s", findings, text)
	}
	if bytes.Count(text, []byte("\n")) != bytes.Count(before, []byte("\n")) {
		t.Error("lines were added")
	}
}
