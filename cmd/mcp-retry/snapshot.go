package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

// snapshot is what servers said of their tools, as mcp-retry snapshot writes it.
type snapshot struct {
	Servers map[string]serverSnapshot `json:"servers"`

	only []json.RawMessage // the tools of a server that the file does not name; see parseSnapshot
}

// serverSnapshot is what one server said.
type serverSnapshot struct {
	ServerInfo json.RawMessage   `json:"server_info,omitempty"` // serverInfo of its handshake
	Tools      []json.RawMessage `json:"tools"`                 // the entries of tools/list as they came, by name
}

func newSnapshot(u *ui) *cobra.Command {
	var config, out string
	var names []string
	timeout := new(defaultCheckTimeout)
	cmd := &cobra.Command{
		Use:   "snapshot [--config FILE] [--server NAME] [-o FILE]",
		Short: "write down which tools the servers have",
		Long: `Starts the servers of the config file, asks each for its tools, and prints them
as JSON, always in the same order. No tool is called. validate --tools and test
take the file, so that neither needs the servers. Commit it, and a change of the
tools shows as a difference.

Tools that tool_filter hides from clients are in it.

Without --config the file is ./mcp-retry.yaml (or .yml, .json, .cue).

Exit status: 0 if every server answered, 1 if one did not, and nothing is
written then; 2 if the config cannot be used.`,
		Example: `  mcp-retry snapshot -o tools.json
  mcp-retry validate --tools tools.json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			servers, err := u.openServers(config, names)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal()
			defer stop()
			s, complete := u.ask(ctx, servers, *timeout)
			if ctx.Err() != nil {
				return signalled(ctx)
			}
			if !complete {
				return &failure{status: exitFailed}
			}
			return u.writeSnapshot(s, out)
		},
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "config `FILE`")
	cmd.Flags().StringArrayVarP(&names, "server", "s", nil, "`NAME` of a server to ask, in place of all; may be repeated")
	cmd.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write; stdout without it, or with -")
	cmd.Flags().Var(durationFlag{&timeout}, "timeout", "how long a server may take to answer: 10s, 500ms, or seconds")
	return cmd
}

// ask asks servers for their tools, all at the same time; complete = each answered, else why not has been said.
func (u *ui) ask(ctx context.Context, servers []prepared, timeout time.Duration) (s *snapshot, complete bool) {
	answers := make([]chan health, len(servers))
	for i, p := range servers {
		answers[i] = make(chan health, 1)
		go func() { answers[i] <- probe(ctx, unfiltered(p), fromNow(timeout), true) }()
	}
	s, complete = &snapshot{Servers: map[string]serverSnapshot{}}, true
	for i, p := range servers {
		h := <-answers[i]
		switch {
		case ctx.Err() != nil:
			complete = false
		case h.Status == statusDown:
			u.warnf("server %q could not be asked for its tools: %s", p.server.Name, h.Detail)
			complete = false
		case h.Tools == nil:
			u.warnf("server %q did not list its tools", p.server.Name)
			complete = false
		default:
			slices.SortStableFunc(h.list, func(a, b json.RawMessage) int { return strings.Compare(toolName(a), toolName(b)) })
			s.Servers[p.server.Name] = serverSnapshot{ServerInfo: h.ServerInfo, Tools: h.list}
		}
	}
	return s, complete
}

// unfiltered is a server without its tool_filter.
func unfiltered(p prepared) prepared {
	server := *p.server
	server.ToolFilter = schema.ToolFilter{}
	compiled, _ := policy.Compile(&server) // its rules have compiled before
	return prepared{&server, compiled}
}

func toolName(entry json.RawMessage) string {
	var tool struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(entry, &tool) // one without a name stands first
	return tool.Name
}

// writeSnapshot writes to a file, or to stdout if that is "" or "-".
func (u *ui) writeSnapshot(s *snapshot, file string) error {
	var text bytes.Buffer
	if err := writeJSON(&text, s); err != nil {
		return err
	}
	if file == "" || file == "-" {
		_, err := u.stdout.Write(text.Bytes())
		return err
	}
	return replaceFile(file, text.Bytes())
}

// snapshot reads the file that --tools names; nil = there is none.
func (v *validation) snapshot() (*snapshot, error) {
	if v.tools == "" {
		return nil, nil
	}
	text, err := os.ReadFile(v.tools)
	if err != nil {
		return nil, cannotRead(v.tools, err)
	}
	s, err := parseSnapshot(text)
	if err != nil {
		return nil, usagef("%q is no snapshot: %v", v.tools, err).hint("mcp-retry snapshot -o %s writes one", v.tools)
	}
	return s, nil
}

// askForTools asks the servers of a config for their tools; complete = each answered, else why not has been said. A server that
// cannot be started, for the config is faulty, is not asked.
func (u *ui) askForTools(ctx context.Context, l *loaded, timeout time.Duration) (s *snapshot, complete bool) {
	if l.config == nil {
		return nil, true
	}
	var servers []prepared
	for _, server := range l.config.Servers {
		faulty := slices.ContainsFunc(l.findings, func(f schema.Finding) bool {
			return f.Level == schema.Error && ownerOf(l.config, f.Pos) == server
		})
		compiled, findings := policy.Compile(server)
		if faulty || findings.HasErrors() {
			continue // what is wrong is told; its tools are asked for once it can be started
		}
		servers = append(servers, prepared{server, compiled})
	}
	return u.ask(ctx, servers, timeout)
}

// tellUnknown says which servers of a config are not in the snapshot, so that nothing is compared with their tools.
func (u *ui) tellUnknown(l *loaded, s *snapshot, file string) {
	if l.config == nil {
		return
	}
	for _, server := range l.config.Servers {
		if _, ok := s.Servers[server.Name]; !ok {
			u.warnf("the tools of server %q are not in %s", server.Name, file)
		}
	}
}

// of are the tools of a server; nil = they are not known.
func (s *snapshot) of(server string) []policy.ToolInfo {
	if s == nil {
		return nil
	}
	known, ok := s.Servers[server]
	if !ok {
		return nil
	}
	tools := make([]policy.ToolInfo, 0, len(known.Tools))
	for _, entry := range known.Tools {
		if t, ok := readEntry(entry); ok {
			tools = append(tools, t)
		}
	}
	return tools
}

// readEntry reads an entry of tools/list, with the defaults of MCP's ToolAnnotations; false = it has no name.
func readEntry(entry json.RawMessage) (policy.ToolInfo, bool) {
	var said struct {
		Name        string `json:"name"`
		Title       string `json:"title"`
		Annotations struct {
			Title       string `json:"title"`
			ReadOnly    *bool  `json:"readOnlyHint"`
			Destructive *bool  `json:"destructiveHint"`
			Idempotent  *bool  `json:"idempotentHint"`
			OpenWorld   *bool  `json:"openWorldHint"`
		} `json:"annotations"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if json.Unmarshal(entry, &said) != nil || said.Name == "" {
		return policy.ToolInfo{}, false
	}
	a := said.Annotations
	is := func(hint *bool, otherwise bool) bool {
		if hint == nil {
			return otherwise
		}
		return *hint
	}
	if said.Title == "" {
		said.Title = a.Title
	}
	return policy.ToolInfo{
		Tool: policy.Tool{
			Name: said.Name, Title: said.Title,
			Annotated: a.ReadOnly != nil || a.Destructive != nil || a.Idempotent != nil || a.OpenWorld != nil,
			ReadOnly:  is(a.ReadOnly, false), Destructive: is(a.Destructive, true),
			Idempotent: is(a.Idempotent, false), OpenWorld: is(a.OpenWorld, true),
		},
		InputSchema: said.InputSchema,
	}, true
}
