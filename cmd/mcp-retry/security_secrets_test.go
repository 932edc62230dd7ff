package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// secrets are the values that must never show, by where they stand. None has the shape of a known token.
var secrets = map[string]string{
	"a plain value of env":         "plain-Value-4711",
	"a variable of ours":           "ours-Value-4712",
	"the default of a variable":    "default-Value-4713",
	"the password of a URL":        "url-Value-4714",
	"what a flag names a token":    "flag-Value-47154715",
	"a header":                     "header-Value-47164716",
	"a variable that nobody names": "other-Value-4717",
}

// secretEntry is a server of a config that holds the secrets; command and args are JSON.
func secretEntry(command, args string) string {
	return fmt.Sprintf(`    command: %s
    args: [%s, --token, %s, "--url=https://user:%s@example.org/x", --header, "Authorization: Bearer %s"]
    env: {PLAIN: %s, OURS: "${OURS}", DEFAULT: "${UNSET_ONE:-%s}"}
`, command, args, secrets["what a flag names a token"], secrets["the password of a URL"], secrets["a header"],
		secrets["a plain value of env"], secrets["the default of a variable"])
}

var secretEnvironment = []string{"OURS=" + secrets["a variable of ours"], "OTHER=" + secrets["a variable that nobody names"]}

// discreet fails the test if a text shows a secret.
func discreet(t *testing.T, what, text string) {
	t.Helper()
	for where, secret := range secrets {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s shows %s: %q", what, where, text[max(0, i-150):min(len(text), i+50)])
		}
	}
}

func TestSecuritySecretsOfAConfigNeverShow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self := fmt.Sprintf("%q", fieldProgram(t))
	good := fmt.Sprintf("%s, %q", flakyCommand, write("script.json", toolbox(readTool("work")).String()))
	bad := fmt.Sprintf("%s, %q", flakyCommand, filepath.Join(dir, "absent.json"))
	config := write("good.yaml", "servers:\n  s:\n"+secretEntry(self, good))
	dies := write("dies.yaml", "servers:\n  s:\n"+secretEntry(self, bad))
	absent := write("absent.yaml", "servers:\n  s:\n"+secretEntry("/no/such/program", good))
	nowhere := write("nowhere.yaml", "servers:\n  s:\n    cwd: /no/such/directory\n"+secretEntry(self, good))
	faults := write("faults.yaml", "servers:\n  s:\n"+strings.ReplaceAll(secretEntry(self, good), "env: {", "env: {A: [1], b c: 2, ")+"    polcy: 1\n")
	broken := write("broken.yaml", "servers:\n  s:\n"+secretEntry(self, good)+"    x: [\n")
	unset := write("unset.yaml", "servers:\n  s:\n"+strings.ReplaceAll(secretEntry(self, good), "${OURS}", "${OURS}${NOT_SET}"))
	shield := write("shield.yaml", "servers:\n  s:\n"+secretEntry(self, good)+"    timeout: x\n")
	test := write("a.test.yaml", "config: good.yaml\ntests: [{name: a, call: {tool: work}, server: [timeout], expect: {status: success}}]\n")
	for _, args := range [][]string{
		{"run", "--log-level", "debug", "--config", config}, {"run", "--log-level", "debug", "--log-format", "pretty", "--config", config},
		{"run", "--config", dies}, {"run", "--config", absent}, {"run", "--config", nowhere}, {"run", "--config", faults}, {"run", "--config", unset},
		{"validate", "--notes", config}, {"validate", "--notes", faults}, {"validate", broken}, {"validate", unset}, {"validate", shield},
		{"validate", "--format", "json", faults}, {"validate", "--format", "sarif", faults}, {"validate", "--format", "junit", faults},
		{"validate", "--format", "github", faults}, {"validate", "--format", "compact", faults},
		{"explain", "--config", config}, {"explain", "--config", config, "--tool", "work", "--tools", "x", "--error", "timeout"}, {"diff", config, dies}, {"diff", dies, absent},
		{"check", "--config", config}, {"check", "--json", "--config", config}, {"check", "--json", "--config", dies}, {"check", "--config", absent}, {"check", "--config", nowhere},
		{"check", "--config", faults}, {"check", "--hook", "--config", absent}, {"doctor", "--config", config}, {"doctor", "--config", dies}, {"doctor", "--config", faults},
		{"snapshot", "--config", config}, {"snapshot", "--config", dies}, {"test", "--coverage", test}, {"test", "--explore", test},
	} {
		t.Run(strings.ReplaceAll(strings.Join(args, " "), dir+"/", ""), func(t *testing.T) {
			out, errs, status := fieldProcess(t, append(secretEnvironment, "HOME="+t.TempDir()), args...)
			discreet(t, "stdout", out)
			discreet(t, "stderr", errs)
			if out+errs == "" && args[0] != "diff" {
				t.Errorf("exit status %d, and not a word", status)
			}
		})
	}
}

func TestSecuritySecretsOfAConfigReachTheServerAndNobodyElse(t *testing.T) {
	t.Parallel()
	f := &measuredField{field: newField(t), address: freeAddress(t)}
	script := toolbox(readTool("work", flaky.Outcome{Exit: new(3)}))
	script.Ledger, script.Environment = f.ledger, []string{"PLAIN", "OURS", "DEFAULT", "OTHER"}
	self, args := fmt.Sprintf("%q", fieldProgram(t)), fmt.Sprintf("%s, %q", flakyCommand, f.write("script.json", script.String()))
	config := f.write("mcp-retry.yaml", "servers:\n  flaky:\n    retry: {base_delay: 1ms}\n"+secretEntry(self, args))
	record := filepath.Join(f.dir, "record.jsonl")
	f.launch([]string{"run", "--log-level", "debug", "--metrics", f.address, "--record", record, "--config", config}, secretEnvironment, false)
	f.open()
	f.call("1", "work", `{}`)
	f.success("1")
	for _, path := range []string{"/metrics", "/healthz", "/debug/state"} {
		_, text := f.page(path)
		discreet(t, path, text)
	}
	f.close()
	discreet(t, "the log", strings.Join(f.words, "\n"))
	recorded, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	discreet(t, "the recording", string(recorded))
	for _, frame := range f.frames {
		discreet(t, "a frame to the client", frame.line)
	}
	env := f.readLedger()[0].Environment
	if env["PLAIN"] != secrets["a plain value of env"] || env["OURS"] != secrets["a variable of ours"] || env["DEFAULT"] != secrets["the default of a variable"] {
		t.Errorf("the server got %q", env)
	}
}
