package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/policy/policytest"
	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

// callQuestion is what the flags of explain say of a call.
type callQuestion struct {
	tool, args, meta string
	failure          string
	attempt          int
	tools            string // file of a snapshot
	asJSON           bool
}

// explainsCalls gives explain the flags with which it explains what policy decides about a call.
func explainsCalls(u *ui, cmd *cobra.Command) *cobra.Command {
	var q callQuestion
	flags := cmd.Flags()
	flags.StringVarP(&q.tool, "tool", "t", "", "explain what is decided about a call of the tool `NAME`")
	flags.StringVar(&q.args, "args", "{}", "with --tool, its arguments: a `JSON` object")
	flags.StringVar(&q.meta, "meta", "", "with --tool, its _meta: a `JSON` object")
	flags.StringVar(&q.failure, "error", "", "with --tool, what its attempts come to: timeout, exit, spawn, malformed, tool[:TEXT] or CODE[:TEXT]")
	flags.IntVar(&q.attempt, "attempt", 1, "with --error, how many attempts `N` come to that")
	flags.StringVar(&q.tools, "tools", "", "with --tool, `FILE` with the servers' tools, written by mcp-retry snapshot")
	flags.BoolVar(&q.asJSON, "json", false, "with --tool, as JSON")

	cmd.Use = strings.TrimSuffix(cmd.Use, "]") + " | --tool NAME …]"
	cmd.Long += `

With --tool, nothing is printed but what policy decides about a call of it: for
each decision its value and the rule that decided, with the conditions of the
rules that were asked and the values of their parts; then what the call comes
to, with the wait before each attempt. The engine is that of run, and nothing is
started. A tool that --tools does not list, or without --tools any, is treated as
run and test treat one that the server has not listed (yet): as unsafe once it
was sent and nobody knows whether it was executed, as unannotated in all else.`
	cmd.Example += `
  mcp-retry explain --tool create_issue --args '{"title": "x"}' --error timeout
  mcp-retry explain --tool search --error -32000:busy --attempt 2 --json`

	other := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if q.tool == "" {
			for _, name := range []string{"args", "meta", "error", "attempt", "tools", "json"} {
				if flags.Changed(name) {
					return usagef("--%s is about a call", name).hint("say of which tool with --tool NAME")
				}
			}
			return other(cmd, args)
		}
		if len(args) > 0 {
			return noArguments(cmd, args)
		}
		config, _ := flags.GetString("config") // explain has the flag
		server, _ := flags.GetString("server")
		return u.explainCall(config, server, &q, flags.Changed("attempt"))
	}
	return cmd
}

// explainCall answers the question; counts says whether --attempt was given.
func (u *ui) explainCall(config, server string, q *callQuestion, counts bool) error {
	question := policytest.Question{Call: schema.TestCall{Tool: q.tool}}
	for _, part := range []struct {
		flag, text string
		to         *json.RawMessage
	}{{"--args", q.args, &question.Call.Args}, {"--meta", q.meta, &question.Call.Meta}} {
		var object map[string]json.RawMessage
		switch {
		case part.text == "":
		case json.Unmarshal([]byte(part.text), &object) != nil:
			return usagef("%s is no JSON object: %q", part.flag, part.text).hint(`write it as '{"name": "value"}'`)
		default:
			*part.to = json.RawMessage(part.text)
		}
	}
	if q.failure == "" && counts {
		return usagef("--attempt is about what --error says").hint("say what the attempts come to, as in --error timeout --attempt %d", q.attempt)
	}
	if q.failure != "" {
		failing, err := answerOf(q.failure)
		if err != nil {
			return err
		}
		if q.attempt < 1 || q.attempt > 100 {
			return usagef("--attempt is from 1 to 100")
		}
		question.Script = slices.Repeat([]schema.TestAnswer{failing}, q.attempt)
	}
	l, err := u.openConfig(config)
	if err != nil {
		return err
	}
	if question.Server, err = pickServer(l.config, server); err != nil {
		return err
	}
	compiled, err := u.compile(l, question.Server)
	if err != nil {
		return err
	}
	question.Policy = compiled
	if q.tools != "" {
		if question.Tools, err = toolsOf(q.tools, question.Server.Name); err != nil {
			return err
		}
	}
	e := policytest.Explain(question)
	if q.asJSON {
		return e.WriteJSON(u.stdout)
	}
	return e.WriteText(u.stdout, policytest.Style{Color: colors(u.stdout)})
}

// answerOf reads what an attempt comes to.
func answerOf(s string) (schema.TestAnswer, error) {
	word, text, told := strings.Cut(s, ":")
	switch word {
	case "timeout", "exit", "malformed":
		if !told {
			return schema.TestAnswer{Kind: word}, nil
		}
	case "spawn":
		if !told {
			return schema.TestAnswer{Kind: "spawn_failure"}, nil
		}
	case "tool":
		a := schema.TestAnswer{Kind: "tool_error"}
		if told {
			a.Value, _ = json.Marshal(text) // a string always has a JSON form
		}
		return a, nil
	default:
		if code, err := strconv.ParseInt(word, 10, 32); err == nil {
			if !told {
				text = "an error"
			}
			message, _ := json.Marshal(text)
			return schema.TestAnswer{Kind: "error", Value: fmt.Appendf(nil, `{"code":%d,"message":%s}`, code, message)}, nil
		}
	}
	return schema.TestAnswer{}, usagef("--error %q is none", s).hint("there is timeout, exit, spawn, malformed, tool[:TEXT] and CODE[:TEXT], as in -32000:busy")
}

// compile compiles the policy of a server that is not going to be started: a variable that is not set is no fault.
func (u *ui) compile(l *loaded, server *schema.Server) (*policy.Policy, error) {
	compiled, findings := policy.Compile(server)
	problems := &loaded{text: l.text, config: l.config}
	problems.add(findings)
	return compiled, u.refuse(problems, func(schema.Finding) bool { return true })
}

// toolsOf returns the tools of a server from a snapshot, as the server lists them.
func toolsOf(file, server string) (json.RawMessage, error) {
	s, err := readSnapshot(file)
	if err != nil {
		return nil, err
	}
	listed, ok := s.Servers[server]
	if !ok {
		return nil, usagef("%q does not have the server %q", file, server).hint("mcp-retry snapshot -o %s writes it anew", file)
	}
	return json.Marshal(listed.Tools)
}

// readSnapshot reads what mcp-retry snapshot wrote.
func readSnapshot(file string) (*snapshot, error) {
	v := validation{tools: file}
	s, err := v.snapshot()
	if err == nil && s.only != nil {
		return nil, usagef("%q does not say which server has its tools", file).hint("mcp-retry snapshot -o %s writes a file that does", file)
	}
	return s, err
}
