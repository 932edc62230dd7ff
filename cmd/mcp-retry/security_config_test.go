package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// A config in CUE is a program, and a few lines of YAML can name billions: a file that would take all memory is refused in time.
func TestSecurityAConfigThatExhaustsTheProcessIsRefused(t *testing.T) {
	t.Parallel()
	const server = "servers: a: command: \"x\"\n"
	doubled := func(first, next string) string {
		text := server + first
		for i := range 40 {
			text += strings.NewReplacer("NEXT", fmt.Sprint("_a", i+1), "BEFORE", fmt.Sprint("_a", i)).Replace(next)
		}
		return text + `servers: a: args: [_a40.y]` + "\n"
	}
	const digits = `_l: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]` + "\n"
	laughs := "x-0: &a0 [lol, lol]\n"
	for i := range 40 {
		laughs += fmt.Sprintf("x-%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	alternatives := ""
	for i := range 20 {
		alternatives += fmt.Sprintf("({a%d: 1} | {a%d: 2} | {b%d: 3}) & ", i, i, i)
	}
	for name, text := range map[string]string{
		"texts doubled.cue":         doubled("_a0: y: \"xxxxxxxx\"\n", "NEXT: y: BEFORE.y + BEFORE.y\n"),
		"texts interpolated.cue":    doubled("_a0: y: \"xxxxxxxx\"\n", "NEXT: y: \"\\(BEFORE.y)\\(BEFORE.y)\"\n"),
		"texts by a definition.cue": doubled("#D: {x: string, y: x + x}\n_a0: #D & {x: \"xxxxxxxx\"}\n", "NEXT: #D & {x: BEFORE.y}\n"),
		"maps doubled.cue":          doubled("_a0: y: {}\n", "NEXT: y: {l: BEFORE.y, r: BEFORE.y}\n"),
		"a range.cue":               "import \"list\"\n" + server + "servers: a: args: [for x in list.Range(0, 1000000000, 1) {\"\\(x)\"}]\n",
		"loops in loops.cue": server + digits + `servers: a: args: [for a in _l for b in _l for c in _l for d in _l for e in _l for f in _l for g in _l for h in _l {"\(a)\(b)\(c)\(h)"}]` +
			"\n",
		"alternatives.cue": server + "_z: " + alternatives + "{}\nservers: a: args: [\"\\(_z.a0)\"]\n",
		"laughs.yaml":      laughs + "servers: {a: {command: x}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := fieldFile(t, strings.ReplaceAll(name, " ", "-"), text)
			out, errs, status := fieldProcess(t, nil, "validate", path)
			if status != 1 || !strings.HasPrefix(out, path+":") || !strings.Contains(out, ": error[syntax]") || errs != "" {
				t.Errorf("exit status %d: %.300s%.300s", status, out, errs)
			}
		})
	}
}

// metacharacters is what a shell would act on.
const metacharacters = "$(touch pwned) `touch pwned`; touch pwned | touch pwned & touch pwned > pwned \n touch pwned #'\"\\ $HOME * ~ {a,b} !! %PATH%"

func TestSecurityNoShellSeesTheConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "$(touch pwned);`touch pwned` & server")
	if err := os.Symlink(fieldProgram(t), program); err != nil {
		t.Skipf("no such name here: %v", err)
	}
	script := flaky.Script{Ledger: filepath.Join(dir, "ledger"), Environment: []string{"META"}}
	file := filepath.Join(dir, "script.json")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{flakyCommand, file, metacharacters, "--", "-c", "touch pwned"}
	config := fieldFile(t, "mcp-retry.json", fmt.Sprintf(`{"servers": {"flaky": {"command": %s, "args": %s, "cwd": %q, "env": {"META": %s, "PASSED": "${PASSED}"}}}}`,
		quotedJSON(program), quoteAll(args), dir, quotedJSON(metacharacters)))
	_, errs, status := fieldProcess(t, []string{"PASSED=" + metacharacters}, "run", "--config", config)
	ledger, err := flaky.ReadLedger(script.Ledger)
	if status != exitFine || err != nil || len(ledger) == 0 {
		t.Fatalf("exit status %d, %v: %s", status, err, errs)
	}
	if got := ledger[0].Argv[1:]; !slices.Equal(got, args) {
		t.Errorf("the arguments became %q", got)
	}
	if got := ledger[0].Environment["META"]; got != metacharacters {
		t.Errorf("the variable became %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("a shell has carried out what the config holds")
	}
}

// The pages of metrics are for this machine alone, change nothing, and wait for nobody.
func TestSecurityThePagesOfMetricsAreForThisMachineAlone(t *testing.T) {
	t.Parallel()
	f := startMeasured(t, "", toolbox(plainTool("work")))
	f.open()
	f.page("/healthz")
	for _, path := range []string{"/", "/metrics", "/healthz", "/debug/state"} {
		for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "0.0.0.0", "localhost.evil.example:80", ""} {
			request, _ := http.NewRequest(http.MethodGet, "http://"+f.address+path, nil)
			if request.Host = host; host == "" {
				request.Host = "evil.example."
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusForbidden || answer.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s for host %q: status %d", path, request.Host, answer.StatusCode)
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			request, _ := http.NewRequest(method, "http://"+f.address+path, strings.NewReader("x"))
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: status %d", method, path, answer.StatusCode)
			}
		}
	}
}

// What only looks at a config starts none of its servers.
func TestSecurityWhatOnlyLooksAtAConfigStartsNothing(t *testing.T) {
	t.Parallel()
	f := newField(t)
	script := toolbox(readTool("work"))
	script.Ledger = f.ledger
	config := f.write("mcp-retry.yaml", fieldConfig(f.write("script.json", script.String()), "policy: [{when: tool.readOnly, cache_ttl: 1m}]"))
	tests := f.write("a.test.yaml", "config: mcp-retry.yaml\ntests: [{name: a, call: {tool: work}, server: [ok], expect: {status: success}}]\n")
	tools := f.write("tools.json", `{"servers": {"flaky": {"tools": [{"name": "work"}]}}}`)
	for _, args := range [][]string{
		{"validate", "--notes", config}, {"test", "--coverage", tests}, {"test", "--explore", "--sequences", "50", tests}, {"explain", "--config", config},
		{"explain", "--config", config, "--tool", "work", "--error", "timeout"}, {"diff", config, config, "--tools", tools}, {"convert", config},
	} {
		if out, errs, status := fieldProcess(t, nil, args...); status == exitUsage {
			t.Errorf("%v: exit status %d: %s%s", args, status, out, errs)
		}
	}
	if _, err := os.Stat(f.ledger); err == nil {
		t.Error("the server was started")
	}
	if _, errs, status := fieldProcess(t, nil, "check", "--config", config); status != exitFine {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	if _, err := os.Stat(f.ledger); err != nil {
		t.Errorf("a start leaves no trace: %v", err)
	}
}
