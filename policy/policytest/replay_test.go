package policytest_test

import (
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/policy/policytest"
	"github.com/bentabol/mcp-retry/schema"
)

// A session in which a read was lost with the server, the same read came again, and a write was taken back.
const recording = `
{"at":"2026-01-01T00:00:00Z","server":"shop","what":"session"}
{"at":"2026-01-01T00:00:00Z","server":"shop","what":"from_server","frame":{"id":1,"result":{"tools":[{"name":"look","annotations":{"readOnlyHint":true}},{"name":"buy","annotations":{"readOnlyHint":false}}]}}}
{"at":"2026-01-01T00:00:01Z","server":"shop","what":"from_client","frame":{"id":"a","method":"tools/call","params":{"name":"look","arguments":{"sku":1}}}}
{"at":"2026-01-01T00:00:01Z","server":"shop","what":"to_server","call":"\"a\"","frame":{"id":2,"method":"tools/call","params":{"name":"look","arguments":{"sku":1}}}}
{"at":"2026-01-01T00:00:03Z","server":"shop","what":"server_down","text":"exit status 1"}
{"at":"2026-01-01T00:00:03Z","server":"shop","what":"to_client","frame":{"id":"a","error":{"code":-31004,"message":"gone"}}}
{"at":"2026-01-01T00:00:10Z","server":"shop","what":"from_client","frame":{"id":"b","method":"tools/call","params":{"name":"look","arguments":{"sku":1}}}}
{"at":"2026-01-01T00:00:10Z","server":"shop","what":"to_server","call":"\"b\"","frame":{"id":3,"method":"tools/call","params":{"name":"look","arguments":{"sku":1}}}}
{"at":"2026-01-01T00:00:11Z","server":"shop","what":"from_server","frame":{"id":3,"result":{"content":[]}}}
{"at":"2026-01-01T00:00:11Z","server":"shop","what":"to_client","frame":{"id":"b","result":{"content":[]}}}
{"at":"2026-01-01T00:00:20Z","server":"shop","what":"from_client","frame":{"id":"c","method":"tools/call","params":{"name":"look","arguments":{"sku":1}}}}
{"at":"2026-01-01T00:00:20Z","server":"shop","what":"to_server","call":"\"c\"","frame":{"id":4,"method":"tools/call","params":{"name":"look","arguments":{"sku":1}}}}
{"at":"2026-01-01T00:00:21Z","server":"shop","what":"from_server","frame":{"id":4,"result":{"content":[]}}}
{"at":"2026-01-01T00:00:21Z","server":"shop","what":"to_client","frame":{"id":"c","result":{"content":[]}}}
{"at":"2026-01-01T00:00:30Z","server":"shop","what":"from_client","frame":{"id":"d","method":"tools/call","params":{"name":"buy"}}}
{"at":"2026-01-01T00:00:30Z","server":"shop","what":"to_server","call":"\"d\"","frame":{"id":5,"method":"tools/call","params":{"name":"buy"}}}
{"at":"2026-01-01T00:00:32Z","server":"shop","what":"from_client","frame":{"method":"notifications/cancelled","params":{"requestId":"d"}}}
`

func replay(t *testing.T, settings string) *policytest.Replayed {
	t.Helper()
	return replayOf(t, recording, settings)
}

func replayOf(t *testing.T, text, settings string) *policytest.Replayed {
	t.Helper()
	recordings, err := policytest.ReadRecordings(strings.NewReader(strings.TrimSpace(text)))
	if err != nil || len(recordings) != 1 || len(recordings[0].Calls) == 0 {
		t.Fatalf("the recording is %+v, %v", recordings, err)
	}
	cfg, findings := schema.Load("a.yaml", []byte("servers: {shop: {command: shop, "+settings+"}}"), nil)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	compiled, _ := policy.Compile(cfg.Servers[0])
	return policytest.Replay(recordings[0], cfg.Servers[0], compiled, nil)
}

// A client may send what is no call; policy has no say in that.
func TestCallsWithoutFormAreLeftOut(t *testing.T) {
	text := `{"at":"2026-01-01T00:00:00Z","server":"shop","what":"session"}`
	for _, frame := range []string{
		`[1,2]`, `{"id":1,"method":"tools/call","params":7}`, `{"id":1,"method":"tools/call","params":{"name":""}}`,
		`{"id":1,"method":"tools/call","params":{"name":"look","arguments":[1]}}`, `{"method":"tools/call","params":{"name":"look"}}`,
	} {
		text += "\n" + `{"at":"2026-01-01T00:00:00Z","server":"shop","what":"from_client","frame":` + frame + `}`
	}
	recordings, err := policytest.ReadRecordings(strings.NewReader(text))
	if err != nil || len(recordings) != 1 || len(recordings[0].Calls) != 0 {
		t.Errorf("the recording is %+v, %v", recordings, err)
	}
}

func TestReplayUnderAnEqualPolicyChangesNothing(t *testing.T) {
	r := replay(t, "retry: {max_retries: 0}")
	if r.Then != r.Now || len(r.Changed) != 0 || r.Assumed != 0 {
		t.Errorf("%+v", r)
	}
	if want := (policytest.Tally{Calls: 4, Attempts: 4, Executions: 2, Failed: 2}); r.Now != want {
		t.Errorf("%+v, want %+v", r.Now, want)
	}
}

func TestReplaySaysWhatWouldHaveBeenOtherwise(t *testing.T) {
	r := replay(t, "retry: {max_retries: 1, jitter: 0}, cache: {tools: {look: 60}}")
	// The lost read is tried again, and that attempt, which the recording lacks, is lost too; the third read is cached.
	if want := (policytest.Tally{Calls: 4, Attempts: 4, Retries: 1, Executions: 1, Unsent: 1, Failed: 2}); r.Now != want || r.Assumed != 1 {
		t.Errorf("%+v, %d assumed; want %+v", r.Now, r.Assumed, want)
	}
	if len(r.Changed) != 2 || r.Changed[0].NowAttempts != 2 || r.Changed[1].NowAttempts != 0 {
		t.Errorf("%+v", r.Changed)
	}
}

// A client that repeats a call once it has its answer does so in the replay too, though a wait between attempts comes out longer:
// it joins nothing. Calls that were under way together still are.
func TestReplayedCallsComeAfterThoseTheyFollowed(t *testing.T) {
	const followed = `
{"at":"2026-01-01T00:00:00Z","server":"shop","what":"session"}
{"at":"2026-01-01T00:00:01Z","server":"shop","what":"from_client","frame":{"id":1,"method":"tools/call","params":{"name":"look"}}}
{"at":"2026-01-01T00:00:01Z","server":"shop","what":"to_server","call":"1","frame":{"id":2,"method":"tools/call","params":{"name":"look"}}}
{"at":"2026-01-01T00:00:01Z","server":"shop","what":"from_server","frame":{"id":2,"error":{"code":-32000,"message":"busy"}}}
{"at":"2026-01-01T00:00:02Z","server":"shop","what":"to_server","call":"1","frame":{"id":3,"method":"tools/call","params":{"name":"look"}}}
{"at":"2026-01-01T00:00:02Z","server":"shop","what":"from_server","frame":{"id":3,"result":{"content":[]}}}
{"at":"2026-01-01T00:00:02Z","server":"shop","what":"to_client","frame":{"id":1,"result":{"content":[]}}}
{"at":"2026-01-01T00:00:02Z","server":"shop","what":"from_client","frame":{"id":2,"method":"tools/call","params":{"name":"look"}}}
{"at":"2026-01-01T00:00:02Z","server":"shop","what":"to_server","call":"2","frame":{"id":4,"method":"tools/call","params":{"name":"look"}}}
{"at":"2026-01-01T00:00:03Z","server":"shop","what":"from_client","frame":{"id":3,"method":"tools/call","params":{"name":"look"}}}
{"at":"2026-01-01T00:00:04Z","server":"shop","what":"from_server","frame":{"id":4,"result":{"content":[]}}}
{"at":"2026-01-01T00:00:04Z","server":"shop","what":"to_client","frame":{"id":2,"result":{"content":[]}}}
{"at":"2026-01-01T00:00:04Z","server":"shop","what":"to_client","frame":{"id":3,"result":{"content":[]}}}
`
	r := replayOf(t, followed, "retry: {max_retries: 1, base_delay: 2, jitter: 0}")
	if want := (policytest.Tally{Calls: 3, Attempts: 3, Retries: 1, Executions: 2, Unsent: 1}); r.Then != want || r.Now != want || len(r.Changed) != 0 {
		t.Errorf("%+v, want %+v twice", r, want)
	}
}

// An error of ours is one in whatever form the client got it, and another one is another end.
func TestErrorsOfOursAreToldApart(t *testing.T) {
	const denied = `
{"at":"2026-01-01T00:00:00Z","server":"shop","what":"session"}
{"at":"2026-01-01T00:00:01Z","server":"shop","what":"from_client","frame":{"id":1,"method":"tools/call","params":{"name":"look"}}}
{"at":"2026-01-01T00:00:01Z","server":"shop","what":"to_client","frame":{"id":1,`
	asError := denied + `"error":{"code":-31005,"message":"no","data":{"source":"mcp-retry","kind":"denied"}}}}`
	asResult := denied + `"result":{"isError":true,"content":[{"type":"text","text":"no"}],"_meta":{"io.github.bentabol.mcp-retry/error":{"code":-31005,"data":{"source":"mcp-retry","kind":"denied"}}}}}}`
	deny := "policy: [{name: no, deny: '\"no\"'}]"
	for _, text := range []string{asError, asResult} {
		for _, settings := range []string{deny, "errors: result, " + deny} {
			if r := replayOf(t, text, settings); r.Then.Refused != 1 || r.Then != r.Now || len(r.Changed) != 0 {
				t.Errorf("%s under %s: %+v", text, settings, r)
			}
		}
		r := replayOf(t, text, "")
		if len(r.Changed) != 1 || r.Changed[0].ThenStatus != "error" || r.Changed[0].ThenCode != -31005 {
			t.Errorf("%+v", r)
		}
	}
}

// Whoever wrote a recording may have been killed in the middle of a line.
func TestACutRecordingIsReadUpToTheCut(t *testing.T) {
	text := strings.TrimSpace(recording)
	recordings, err := policytest.ReadRecordings(strings.NewReader(text[:len(text)-20]))
	if err != nil || len(recordings) != 1 || !recordings[0].Cut || len(recordings[0].Calls) != 4 || recordings[0].Calls[3].Cancels {
		t.Errorf("%+v, %v", recordings, err)
	}
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	for _, text := range []string{"servers:", "{}", `{"what":"session"}` + "\n{\n{}", `{"what":"session"}` + "\n{}"} {
		if _, err := policytest.ReadRecordings(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
