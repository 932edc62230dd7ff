package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/policy/policytest"
	"github.com/spf13/cobra"
)

func newReplay(u *ui) *cobra.Command {
	var config, server, tools string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "replay FILE [--config FILE] [--server NAME]",
		Short: "run recorded traffic through another config",
		Long: `Makes the calls that run --record wrote down again, each at its time, under a
config, to a server that answers as it did then, and says what would have been
otherwise: attempts, retries, executions, results without an attempt, refusals.
The clock is virtual, so an hour takes a moment, and nothing is started. A call
that followed the end of another comes after that again, if need be later.

A recording of several servers is replayed server by server, each under the
policy of the server of its name; with --server, only what is of that server. A
recording of one server may be replayed under the policy of any.

Attempts that the recording does not have are answered as the last one of the
same call was.

Exit status: 0 whether anything differs or not, 1 if nothing is recorded in the
file, 2 if a file cannot be used.`,
		Example: `  mcp-retry run --config mcp-retry.yaml --server github --record traffic.jsonl
  mcp-retry replay traffic.jsonl --config next.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("replay takes one recording, not %d", len(args)).hint("mcp-retry run --record FILE writes one")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return u.replay(args[0], config, server, tools, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&config, "config", "c", "", "config `FILE`")
	flags.StringVarP(&server, "server", "s", "", "`NAME` of the server in it; default: that of the recording, or the only one")
	flags.StringVar(&tools, "tools", "", "`FILE` with the servers' tools, if the client of the recording did not ask for them")
	flags.BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func (u *ui) replay(file, config, server, tools string, asJSON bool) error {
	f, err := os.Open(file)
	if err != nil {
		return cannotRead(file, err)
	}
	defer f.Close()
	recordings, err := policytest.ReadRecordings(f)
	if err != nil {
		return usagef("%q is no recording: %v", file, err).hint("mcp-retry run --record FILE writes one")
	}
	if len(recordings) == 0 {
		empty := &failure{status: exitFailed, message: fmt.Sprintf("nothing is recorded in %q", file)}
		return empty.hint("mcp-retry run --record FILE writes down what a client does from then on")
	}
	l, err := u.openConfig(config)
	if err != nil {
		return err
	}
	if recordings, err = recordingsOf(recordings, server); err != nil {
		return err
	}
	replayed := []*policytest.Replayed{}
	for _, r := range recordings {
		if r.Cut {
			u.warnf("the last line of a session in %q is cut off, and left out", file)
		}
		name := server
		if name == "" && l.config.Server(r.Server) != nil {
			name = r.Server
		}
		target, err := pickServer(l.config, name)
		if err != nil {
			return err
		}
		compiled, err := u.compile(l, target)
		if err != nil {
			return err
		}
		var listed json.RawMessage
		if tools != "" {
			if listed, err = toolsOf(tools, target.Name); err != nil {
				return err
			}
		}
		replayed = append(replayed, policytest.Replay(r, target, compiled, listed))
	}
	if asJSON {
		encoder := json.NewEncoder(u.stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(replayed)
	}
	return writeReplayed(u.stdout, recordings, replayed)
}

// recordingsOf picks the sessions of a server; those of an only server may be meant whatever its name was. server may be "": all.
func recordingsOf(all []*policytest.Recording, server string) ([]*policytest.Recording, error) {
	var names []string
	for _, r := range all {
		if !slices.Contains(names, r.Server) {
			names = append(names, r.Server)
		}
	}
	switch {
	case server == "" || len(names) < 2:
		return all, nil
	case !slices.Contains(names, server):
		return nil, usagef("the recording has no server %q", server).hint("it has %s", strings.Join(names, ", "))
	}
	return slices.DeleteFunc(all, func(r *policytest.Recording) bool { return r.Server != server }), nil
}

func writeReplayed(w io.Writer, recordings []*policytest.Recording, replayed []*policytest.Replayed) error {
	var out strings.Builder
	for i, r := range replayed {
		fmt.Fprintf(&out, "session of %s with %s\n", recordings[i].Start.UTC().Format(time.RFC3339), recordings[i].Server)
		fmt.Fprintf(&out, "  %-26s %9s %9s\n", "", "recorded", "replayed")
		for _, row := range []struct {
			name      string
			then, now int
		}{
			{"calls", r.Then.Calls, r.Now.Calls},
			{"attempts", r.Then.Attempts, r.Now.Attempts},
			{"retries", r.Then.Retries, r.Now.Retries},
			{"executions", r.Then.Executions, r.Now.Executions},
			{"results without an attempt", r.Then.Unsent, r.Now.Unsent},
			{"refused", r.Then.Refused, r.Now.Refused},
			{"failed", r.Then.Failed, r.Now.Failed},
		} {
			mark := ""
			if row.then != row.now {
				mark = fmt.Sprintf("  %+d", row.now-row.then)
			}
			fmt.Fprintf(&out, "  %-26s %9d %9d%s\n", row.name, row.then, row.now, mark)
		}
		for _, c := range r.Changed {
			fmt.Fprintf(&out, "  at %s: %s %s\n", time.Duration(c.AtMS*float64(time.Millisecond)).Round(time.Millisecond), c.Tool, c.Args)
			then := c.ThenStatus
			if c.ThenCode != 0 {
				then += fmt.Sprintf(" %d", c.ThenCode)
			}
			fmt.Fprintf(&out, "    recorded %s in %s\n    replayed %s in %s\n", then, counted(c.ThenAttempts, "attempt"), c.Now, counted(c.NowAttempts, "attempt"))
		}
		if r.Assumed > 0 {
			fmt.Fprintf(&out, "  the recording lacks %s, which were answered as the last one of the call was\n", counted(r.Assumed, "attempt"))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
