package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkServerCommand is the argument that makes the test binary a server on the official Go SDK.
const sdkServerCommand = "__sdk-server"

// sdkServerMain serves MCP, of every revision, on stdin and stdout.
func sdkServerMain() int {
	j, err := openJournal(os.Getenv("MCP_TAP"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server := newSDKServer()
	transport := &mcp.IOTransport{
		Reader: struct {
			io.Reader
			io.Closer
		}{io.TeeReader(os.Stdin, j.direction("> ")), os.Stdin},
		Writer: struct {
			io.Writer
			io.Closer
		}{io.MultiWriter(j.direction("< "), os.Stdout), os.Stdout},
	}
	if err := server.Run(context.Background(), transport); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

type textInput struct {
	Text string `json:"text"`
}

func textResult(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// newSDKServer has a tool of each kind that matters to a proxy.
func newSDKServer() *mcp.Server {
	nothing := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk-server", Version: "1.0"}, &mcp.ServerOptions{
		Instructions:       "be careful",
		SubscribeHandler:   nothing,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"one", "two"}}}, nil
		},
	})
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
			return textResult("echo: %s", in.Text), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "pay", Annotations: &mcp.ToolAnnotations{}},
		func(_ context.Context, _ *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
			return textResult("paid: %s", in.Text), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "work", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, req *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
			for n := range 3 {
				req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					ProgressToken: req.Params.GetProgressToken(), Progress: float64(n + 1), Total: 3, Message: in.Text,
				})
			}
			return textResult("worked: %s", in.Text), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "hang", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, req *mcp.CallToolRequest, _ textInput) (*mcp.CallToolResult, any, error) {
			req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: 1})
			<-ctx.Done()
			return nil, nil, ctx.Err()
		})
	mcp.AddTool(server, &mcp.Tool{Name: "ask", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, req *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
			if answer, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
				return textResult("%s, %s: %v, state %q", in.Text, answer.Action, answer.Content["name"], req.Params.RequestState), nil, nil
			}
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{"name": &mcp.ElicitParams{
					Message:         "What is your name?",
					RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
				}},
				RequestState: "é <&> \\ \" " + in.Text,
			}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "change", Annotations: &mcp.ToolAnnotations{}},
		func(ctx context.Context, _ *mcp.CallToolRequest, in textInput) (*mcp.CallToolResult, any, error) {
			switch in.Text {
			case "resource":
				server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "test://resource"})
			default:
				server.AddPrompt(&mcp.Prompt{Name: "fresh"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
					return &mcp.GetPromptResult{}, nil
				})
			}
			return textResult("changed: %s", in.Text), nil, nil
		})
	server.AddResource(&mcp.Resource{URI: "test://resource", Name: "resource"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://resource", Text: "content"}}}, nil
		})
	server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who"}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.TextContent{Text: "greet " + req.Params.Arguments["who"]}},
			}}, nil
		})
	return server
}

// A journal does for this server what testdata/realserver/tap.cjs does for those on node.
type journal struct {
	mu     sync.Mutex
	dir    string
	file   *os.File
	doomed string // raw id of the request whose answer must not be written
}

func openJournal(dir string) (*journal, error) {
	if dir == "" {
		return nil, errors.New("MCP_TAP is not set")
	}
	lives, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	if err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.journal", len(lives)+1)))
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(file, "pid %d\n", os.Getpid())
	return &journal{dir: dir, file: file}, err
}

// direction is where one of the two directions is written to.
func (j *journal) direction(prefix string) io.Writer { return &journalSide{journal: j, prefix: prefix} }

type journalSide struct {
	journal *journal
	prefix  string
	rest    []byte
}

func (s *journalSide) Write(p []byte) (int, error) {
	j := s.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	s.rest = append(s.rest, p...)
	for {
		line, after, ok := bytes.Cut(s.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		s.rest = after
		fmt.Fprintf(j.file, "%s%s\n", s.prefix, line)
		var m message
		if json.Unmarshal(line, &m) == nil && j.fatal(s.prefix == "> ", m) {
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			select {}
		}
	}
}

// fatal reports whether the process is to end now.
func (j *journal) fatal(read bool, m message) bool {
	if !read {
		return m.Method == "" && j.doomed != "" && string(m.ID) == j.doomed
	}
	wish := filepath.Join(j.dir, "die")
	text, err := os.ReadFile(wish)
	if errors.Is(err, fs.ErrNotExist) || m.ID == nil {
		return false
	}
	moment, name, _ := strings.Cut(string(text), " ")
	if m.Method != name && !(m.Method == "tools/call" && m.tool() == name) {
		return false
	}
	os.Remove(wish)
	if moment == "out" {
		j.doomed = string(m.ID)
	}
	return moment == "in"
}
