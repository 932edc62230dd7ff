package main

//lint:file-ignore SA1019 what later revisions have deprecated is what servers of today ask for

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tourist is the official Go SDK's client on a tour of a server, with notes of what it saw.
type tourist struct {
	t        *testing.T
	ctx      context.Context
	session  *mcp.ClientSession
	notes    []string
	progress chan float64
	updated  chan string
}

// travel connects the client by whatever reaches the server.
func travel(t *testing.T, transport mcp.Transport, version string) *tourist {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	v := &tourist{t: t, ctx: ctx, progress: make(chan float64, 100), updated: make(chan string, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: "tourist", Version: "1.0"}, &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			if req.Params.MaxTokens == 13 {
				return nil, &jsonrpc.Error{Code: -1, Message: "not that many"}
			}
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "sampled"}}, nil
		},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			v.progress <- req.Params.Progress
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			v.updated <- req.Params.URI
		},
		LoggingMessageHandler: func(context.Context, *mcp.LoggingMessageRequest) {},
	})
	client.AddRoots(&mcp.Root{URI: "file:///somewhere", Name: "somewhere"})
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	v.session = session
	v.note("introduction", session.InitializeResult(), nil)
	return v
}

// note keeps what an answer says.
func (v *tourist) note(what string, result any, err error) {
	text, fault := json.Marshal(result)
	if fault != nil {
		v.t.Fatal(fault)
	}
	if err != nil {
		text = fmt.Append(nil, "error: ", err)
	}
	v.notes = append(v.notes, what+"\n\t"+string(text))
}

func noteAll[T any](v *tourist, what string, all iter.Seq2[T, error]) {
	n := 0
	for one, err := range all {
		v.note(fmt.Sprintf("%s %d", what, n), one, err)
		n++
	}
}

func (v *tourist) call(tool string, arguments string) {
	result, err := v.session.CallTool(v.ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	v.note(tool+" "+arguments, result, err)
}

// work calls a tool that tells how far it is, three times.
func (v *tourist) work(tool string) {
	v.t.Helper()
	work := &mcp.CallToolParams{Name: tool, Arguments: textInput{"w"}}
	work.SetProgressToken("token")
	if _, err := v.session.CallTool(v.ctx, work); err != nil {
		v.t.Fatal(err)
	}
	for want := 1.0; want <= 3; want++ {
		if got := next(v, v.progress); got != want {
			v.t.Errorf("progress %v, want %v", got, want)
		}
	}
}

// cancel calls a tool that does not answer, and takes the call back once the tool is at it.
func (v *tourist) cancel(tool string) {
	v.t.Helper()
	ctx, cancel := context.WithCancel(v.ctx)
	defer cancel()
	hang := &mcp.CallToolParams{Name: tool, Arguments: textInput{}}
	hang.SetProgressToken(7)
	ended := make(chan error, 1)
	go func() {
		_, err := v.session.CallTool(ctx, hang)
		ended <- err
	}()
	next(v, v.progress)
	cancel()
	if err := next(v, ended); !errors.Is(err, context.Canceled) {
		v.t.Errorf("the cancelled call ended with %v", err)
	}
}

// next waits for what the server or the client says next.
func next[T any](v *tourist, from <-chan T) (one T) {
	v.t.Helper()
	select {
	case one = <-from:
	case <-v.ctx.Done():
		v.t.Fatal("nothing came")
	}
	return one
}

// nudge makes the server say something, again and again until it comes.
func nudge[T any](v *tourist, from <-chan T, cause func()) (one T) {
	v.t.Helper()
	for v.ctx.Err() == nil {
		cause()
		select {
		case one = <-from:
			return one
		case <-time.After(50 * time.Millisecond):
		}
	}
	v.t.Fatal("nothing came")
	return one
}

// look asks for everything that there is, and calls the tools given.
func (v *tourist) look(calls [][2]string) {
	v.t.Helper()
	noteAll(v, "tool", v.session.Tools(v.ctx, nil))
	for _, c := range calls {
		v.call(c[0], c[1])
	}
	noteAll(v, "resource", v.session.Resources(v.ctx, nil))
	noteAll(v, "template", v.session.ResourceTemplates(v.ctx, nil))
	noteAll(v, "prompt", v.session.Prompts(v.ctx, nil))
	read, err := v.session.ReadResource(v.ctx, &mcp.ReadResourceParams{URI: "nowhere://at.all"})
	v.note("read", read, err)
	prompt, err := v.session.GetPrompt(v.ctx, &mcp.GetPromptParams{Name: "args-prompt", Arguments: map[string]string{"city": "Rome"}})
	v.note("prompt", prompt, err)
	completion, err := v.session.Complete(v.ctx, &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "completable-prompt"}, Argument: mcp.CompleteParamsArgument{Name: "department", Value: "S"},
	})
	v.note("completion", completion, err)
	v.note("ping", nil, v.session.Ping(v.ctx, nil))
}

// TestSDKClient tours each server directly and through mcp-retry, and sees the same. By default this client asks for the newest
// revision, and shakes hands with a server that does not know it, on the same connection.
func TestSDKClient(t *testing.T) {
	volatile := regexp.MustCompile(`created at [0-9:]+ [AP]M|"blob":"[^"]*"|(modified|created|accessed): .*?\\n`)
	tests := []struct {
		server   realServer
		versions []string
		calls    [][2]string
	}{
		{everythingServer, []string{"", newest, "2024-11-05"}, [][2]string{
			{"echo", `{"message":"hello"}`},
			{"echo", `{}`},
			{"get-sum", `{"a":1,"b":2}`},
			{"get-structured-content", `{"location":"Chicago"}`},
			{"get-annotated-message", `{"messageType":"success","includeImage":true}`},
			{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`},
			{"get-roots-list", `{}`},
			{"trigger-sampling-request", `{"prompt":"p"}`},
			{"trigger-sampling-request", `{"prompt":"p","maxTokens":13}`},
			{"trigger-elicitation-request", `{}`},
			{"no-such-tool", `{}`},
		}},
		{filesystemServer, []string{""}, [][2]string{
			{"write_file", `{"path":"DIR/a.txt","content":"one"}`},
			{"read_text_file", `{"path":"DIR/a.txt"}`},
			{"edit_file", `{"path":"DIR/a.txt","edits":[{"oldText":"one","newText":"two"}]}`},
			{"read_text_file", `{"path":"DIR/a.txt"}`},
			{"get_file_info", `{"path":"DIR/a.txt"}`},
			{"read_text_file", `{"path":"/etc/passwd"}`},
		}},
		{memoryServer, []string{""}, [][2]string{
			{"create_entities", `{"entities":[{"name":"ada","entityType":"person","observations":["counts"]}]}`},
			{"add_observations", `{"observations":[{"entityName":"ada","contents":["writes"]}]}`},
			{"read_graph", `{}`},
			{"open_nodes", `{"names":[7]}`},
		}},
		{realServer{}, []string{"", newest, "2025-06-18", "2024-11-05"}, [][2]string{
			{"echo", `{"text":"hello"}`},
			{"pay", `{"text":"1"}`},
			{"ask", `{"text":"who"}`}, // the client answers by itself and calls again
			{"none", `{}`},
		}},
	}
	for _, test := range tests {
		for _, version := range test.versions {
			t.Run(strings.Trim(test.server.name+"/"+version, "/"), func(t *testing.T) {
				t.Parallel()
				tour := func(t *testing.T, r route) []string {
					at := newPlace(t)
					transport := &mcp.CommandTransport{Command: command(t, r, test.server, at, nil), TerminateDuration: patience}
					if r == direct {
						transport.TerminateDuration = time.Millisecond // some servers do not go by themselves
					}
					v := travel(t, transport, version)
					if test.server.name == "filesystem" {
						// Its one root is nowhere, so it stays with the directory of its command line.
						v.call("list_allowed_directories", "{}")
					}
					var calls [][2]string
					for _, c := range test.calls {
						calls = append(calls, [2]string{c[0], strings.ReplaceAll(c[1], "DIR", at.dir)})
					}
					v.look(calls)
					if err := v.session.Close(); err != nil && r != direct {
						t.Errorf("closing: %v", err)
					}
					for _, l := range at.lives(t) {
						if running(l.pid) && r != direct {
							t.Errorf("the server, process %d, outlives mcp-retry", l.pid)
						}
					}
					for i, note := range v.notes {
						v.notes[i] = volatile.ReplaceAllString(strings.ReplaceAll(note, at.dir, "DIR"), "VOLATILE")
					}
					return v.notes
				}
				want := tour(t, direct)
				for _, r := range proxied {
					got := tour(t, r)
					if len(got) != len(want) {
						t.Fatalf("%s: %d notes, want %d", r, len(got), len(want))
					}
					for i := range want {
						if got[i] != want[i] {
							t.Errorf("%s: through mcp-retry\n%.2000s\nwithout it\n%.2000s", r, got[i], want[i])
						}
					}
				}
			})
		}
	}
}

// TestSDKClientFollowsAServer: progress, updates of a resource and the end of a cancelled call reach it as ever.
func TestSDKClientFollowsAServer(t *testing.T) {
	for _, version := range []string{"", newest} {
		for _, r := range []route{direct, throughWrap, throughRun} {
			t.Run(r.String()+version, func(t *testing.T) {
				t.Parallel()
				at := newPlace(t)
				v := travel(t, &mcp.CommandTransport{Command: command(t, r, realServer{}, at, nil), TerminateDuration: patience}, version)
				noteAll(v, "tool", v.session.Tools(v.ctx, nil))

				v.work("work")

				if err := v.session.Subscribe(v.ctx, &mcp.SubscribeParams{URI: "test://resource"}); err != nil {
					t.Fatal(err)
				}
				// A revision of today has no answer to wait for once the server has begun to watch.
				if got := nudge(v, v.updated, func() { v.call("change", `{"text":"resource"}`) }); got != "test://resource" {
					t.Errorf("%s was updated", got)
				}
				if err := v.session.Unsubscribe(v.ctx, &mcp.UnsubscribeParams{URI: "test://resource"}); err != nil {
					t.Fatal(err)
				}

				v.cancel("hang")
				// This client cancels in the background, and forgets to if it is closed first.
				for !at.cancels(t, "hang") {
					if v.ctx.Err() != nil {
						t.Fatal("the server was not told of the cancellation")
					}
					v.call("echo", `{"text":"after"}`)
					if last := v.notes[len(v.notes)-1]; !strings.Contains(last, "echo: after") {
						t.Fatal(last)
					}
				}
				if err := v.session.Close(); err != nil {
					t.Errorf("closing: %v", err)
				}
			})
		}
	}
}

// TestSDKClientIsSparedFaults that would end its session, or cost it an answer, without mcp-retry.
func TestSDKClientIsSparedFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ledger := filepath.Join(dir, "ledger.jsonl")
	script := flaky.Script{
		Ledger: ledger,
		Tools: []flaky.Tool{
			{Name: "look", Annotations: &flaky.Annotations{ReadOnly: new(true)}, Plan: flaky.Plan{Outcomes: []flaky.Outcome{
				{Error: &flaky.Error{Code: -32000, Message: "busy"}},
				{Exit: new(3)},
				{Kill: true},
			}}},
			{Name: "chat", Annotations: &flaky.Annotations{ReadOnly: new(true)}, Plan: flaky.Plan{Outcomes: []flaky.Outcome{
				{Raw: []string{"Listening on stdio ...", "{}", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`}},
			}}},
			{Name: "pay", Annotations: &flaky.Annotations{Destructive: new(true)}, Plan: flaky.Plan{Outcomes: []flaky.Outcome{
				{Effect: new(true), Kill: true},
			}}},
		},
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"servers": map[string]any{"flaky": map[string]any{
		"command": program, "args": []string{flakyCommand}, "env": map[string]string{flaky.EnvVar: script.String()},
		"retry": map[string]any{"max_retries": 3, "base_delay": 0.001},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		t.Fatal(err)
	}
	v := travel(t, &mcp.CommandTransport{Command: mcpRetry(t, "run", "--config", file), TerminateDuration: patience}, newest)
	noteAll(v, "tool", v.session.Tools(v.ctx, nil))
	for _, tool := range []string{"look", "chat"} {
		if result, err := v.session.CallTool(v.ctx, &mcp.CallToolParams{Name: tool}); err != nil || result.IsError {
			t.Errorf("%s: %v", tool, err)
		}
	}
	_, err = v.session.CallTool(v.ctx, &mcp.CallToolParams{Name: "pay"})
	var fault *jsonrpc.Error
	if !errors.As(err, &fault) || fault.Code != -31004 || !strings.Contains(string(fault.Data), `"mayHaveExecuted":"unknown"`) {
		t.Errorf("pay: %v", err)
	}
	if _, err := v.session.CallTool(v.ctx, &mcp.CallToolParams{Name: "look"}); err != nil {
		t.Errorf("look: %v", err)
	}
	if err := v.session.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	seen, err := flaky.ReadLedger(ledger)
	if err != nil {
		t.Fatal(err)
	}
	if n := seen.Attempts("look"); n != 5 {
		t.Errorf("look was attempted %d times, want 4 and 1", n)
	}
	if n := seen.Executions("pay"); n != 1 {
		t.Errorf("paid %d times, want once", n)
	}
}
