package schema

import (
	"slices"
	"testing"
)

func TestSilence(t *testing.T) {
	const head = "servers:\n  a:\n    command: x\n"
	for _, test := range []struct {
		name, file, text string
		want             []string // IDs of what is left
	}{
		{"on the line", "a.yaml", head + "    call_timeout: 7200 # mcp-retry ignore: MR047 it builds\n", nil},
		{"above the line", "a.yaml", head + "    # mcp-retry ignore: milliseconds it builds\n    call_timeout: 7200\n", nil},
		{"comments and blanks between", "a.yaml", head + "    # mcp-retry ignore: MR047 it builds\n    # really\n\n    call_timeout: 7200\n", nil},
		{"in lower case", "a.yaml", head + "    call_timeout: 7200 # mcp-retry ignore: mr047 it builds\n", nil},
		{"two rules", "a.yaml", head + "    # mcp-retry ignore: MR040, MR047 both are meant\n    call_timeout: 7200\n", []string{"ignore-unused"}},
		{"two comments", "a.yaml", head + "    # mcp-retry ignore: MR047 it builds\n    # mcp-retry ignore: MR040 no secret\n    args: [--token=abcDEF0123456789abcd]\n", []string{"ignore-unused"}},
		{"a line too high", "a.yaml", head + "    # mcp-retry ignore: MR047 it builds\n    restart: never\n    call_timeout: 7200\n", []string{"ignore-unused", "milliseconds"}},
		{"above an item of a list, for all of it", "a.yaml", head + "    policy:\n      # mcp-retry ignore: MR047 it builds\n      - name: b\n        when: args.slow\n        call_timeout: 7200\n      - call_timeout: 7200\n", []string{"milliseconds"}},
		{"above the dash of an item that begins below it", "a.yaml", head + "    policy:\n      # mcp-retry ignore: MR047 it builds\n      - # the build\n        name: b\n        call_timeout: 7200\n      - call_timeout: 7200\n", []string{"milliseconds"}},
		{"behind the dash of an item that begins below it", "a.yaml", head + "    policy:\n      - # mcp-retry ignore: MR047 it builds\n        name: b\n        call_timeout: 7200\n      - call_timeout: 7200\n", []string{"milliseconds"}},
		{"what an error may hide is not unused", "a.yaml", head + "    restart: sometimes # mcp-retry ignore: MR047 it builds\n", []string{"bad-value"}},
		{"above an item that is found nothing in", "a.yaml", head + "    policy:\n      # mcp-retry ignore: MR047 it builds\n      - name: b\n        retry: false\n      - call_timeout: 7200\n", []string{"ignore-unused", "milliseconds"}},
		{"behind the first line of an item, for that line alone", "a.yaml", head + "    policy:\n      - name: b # mcp-retry ignore: MR047 it builds\n        call_timeout: 7200\n", []string{"ignore-unused", "milliseconds"}},
		{"what the tools may add is noted", "a.yaml", head + "    cwd: /tmp # mcp-retry ignore: condition-never later\n", []string{"ignore-unused"}},
		{"no reason", "a.yaml", head + "    call_timeout: 7200 # mcp-retry ignore: MR047\n", []string{"ignore-reason"}},
		{"no rule", "a.yaml", head + "    call_timeout: 7200 # mcp-retry ignore:\n", []string{"milliseconds", "ignore-unknown"}},
		{"an unknown rule", "a.yaml", head + "    call_timeout: 7200 # mcp-retry ignore: millisecond it builds\n", []string{"milliseconds", "ignore-unknown"}},
		{"an error", "a.yaml", head + "    call_timeout: 60\n    total_timeout: 30 # mcp-retry ignore: MR013 it works\n", []string{"timeout-order", "ignore-error"}},
		{"what depends on the computer is never unused", "a.yaml", head + "    cwd: /tmp # mcp-retry ignore: unset-variable CI sets it\n", nil},
		{"what needs the tools is not unused without", "a.yaml", head + "    cwd: /tmp # mcp-retry ignore: no-such-tool later\n", nil},
		{"text in quotes", "a.yaml", head + "    env: {A: \"x # mcp-retry ignore: MR047 x\"}\n    call_timeout: 7200\n", []string{"milliseconds"}},
		{"text of several lines", "a.yaml", head + "    env:\n      A: |\n        # mcp-retry ignore: MR047 x\n    call_timeout: 7200\n", []string{"milliseconds"}},
		{"no blank before the sign", "a.yaml", head + "    cwd: /tmp# mcp-retry ignore: MR047 x\n    call_timeout: 7200\n", []string{"syntax", "milliseconds"}},
		{"a block, from its key", "a.yaml", head + "    env:\n      # mcp-retry ignore: secret it is a test key\n      KEY: |\n        hello\n        ghp_16C7e42F292c6912E7710c838347Ae178B4a\n", nil},
		{"lines end with CRLF", "a.yaml", "servers:\r\n  a:\r\n    command: x\r\n    call_timeout: 7200 # mcp-retry ignore: MR047 it builds\r\n", nil},
		{"JSON on the line", "a.json", "{\"servers\": {\"a\": {\"command\": \"x\",\n\"call_timeout\": 7200 // mcp-retry ignore: MR047 it builds\n}}}", nil},
		{"JSON above", "a.json", "{\"servers\": {\"a\": {\"command\": \"x\",\n// mcp-retry ignore: MR047 it builds\n\"call_timeout\": 7200}}}", nil},
		{"JSON text", "a.json", "{\"servers\": {\"a\": {\"command\": \"x // mcp-retry ignore: MR047 it builds\",\"args\":[],\n\"call_timeout\": 7200}}}", []string{"milliseconds"}},
		{"CUE", "a.cue", "servers: a: {\n\tcommand: \"x\"\n\t// mcp-retry ignore: MR047 it builds\n\tcall_timeout: 7200\n}\n", nil},
		{"no colon", "a.yaml", head + "    call_timeout: 7200 # mcp-retry ignore MR047 it builds\n", []string{"milliseconds", "ignore-unused"}},
		{"the colon too early", "a.yaml", head + "    # mcp-retry: ignore milliseconds it builds\n    call_timeout: 7200\n", []string{"ignore-unused", "milliseconds"}},
		{"in capitals", "a.json", "{\"servers\": {\"a\": {\"command\": \"x\",\n// MCP-Retry-Ignore: MR047 it builds\n\"call_timeout\": 7200}}}", []string{"ignore-unused", "milliseconds"}},
		{"prose that names no rule", "a.yaml", head + "    # have mcp-retry ignore tools that write\n    cwd: /tmp # mcp-retry ignores it\n", nil},
		{"no colon, in quotes", "a.yaml", head + "    env: {A: \"x # mcp-retry ignore MR047 x\"}\n    cwd: /tmp\n", nil},
		{"another sign", "a.cue", "servers: a: {\n\tcommand: \"x\"\n\tcall_timeout: 7200 // # mcp-retry ignore MR047\n}\n", []string{"milliseconds"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, findings := Load(test.file, []byte(test.text), testEnv)
			var got []string
			for _, f := range findings.Silence(test.file, []byte(test.text), false) {
				got = append(got, f.ID)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestACommentThatIsNotWrittenAsOneThatSilencesIsToldHow(t *testing.T) {
	text := []byte("servers:\n  a:\n    command: x\n    call_timeout: 7200 # mcp-retry ignore mr047 it builds\n")
	_, findings := Load("a.yaml", text, testEnv)
	got := findings.Silence("a.yaml", text, false)
	want := Finding{Pos: Pos{File: "a.yaml", Line: 4, Col: 26, Len: 22}, Level: Warning, ID: "ignore-unused",
		Message: "this comment silences nothing: it does not begin as one that does", Hint: `write "mcp-retry ignore: MR047" and the reason`}
	if len(got) != 2 || got[1] != want {
		t.Errorf("got %v", got)
	}
}

func TestAnUnusedIgnoreIsToldOnceTheToolsAreKnown(t *testing.T) {
	text := []byte("servers:\n  a:\n    command: x # mcp-retry ignore: no-such-tool later\n")
	_, findings := Load("a.yaml", text, testEnv)
	if got := findings.Silence("a.yaml", text, true); len(got) != 1 || got[0].ID != "ignore-unused" {
		t.Error(got)
	}
}
