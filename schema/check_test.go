package schema

import "testing"

// One fault is one finding, however many servers it reaches and whatever follows from it.
func TestOneFaultIsOneFinding(t *testing.T) {
	for name, tc := range map[string]struct{ file, text, want string }{
		"timeouts of the defaults, for two servers": {"a.yaml",
			"defaults: {call_timeout: 60, total_timeout: 30}\nservers:\n  a: {command: x}\n  b: {command: y}\n", "timeout-order"},
		"the value of a key that there is not": {"a.cue", "servers: a: {\n\tcommand: \"x\"\n\tcolour: number\n}\n", "unknown-key"},
		"a constraint in the place of a value": {"a.cue", "servers: a: {\n\tcommand: string\n}\n", "bad-value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := Load(tc.file, []byte(tc.text), testEnv)
			if len(findings) != 1 || findings[0].ID != tc.want {
				t.Errorf("got %v, want one %s", findings, tc.want)
			}
		})
	}
}
