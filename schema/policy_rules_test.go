package schema

import "testing"

func TestOfAFaultyRuleTheSoundPartsAreKept(t *testing.T) {
	for name, test := range map[string]struct {
		rule    string
		when    string
		decides int
	}{
		"a faulty setting":          {"{when: a.b, retry: 1}", "a.b", 0},
		"one faulty setting of two": {"{when: a.b, retry: 1, deny: c}", "a.b", 1},
		"an unknown key":            {"{when: a.b, retyr: d}", "a.b", 0},
		"no decision":               {"{when: a.b}", "a.b", 0},
		"a faulty condition":        {"{when: 5, retry: d}", "false", 1},
		"the words of YAML 1.1":     {"{when: a.b, retry: no, deny: c}", "a.b", 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, findings := Load("a.yaml", []byte("servers: {a: {command: x, policy: ["+test.rule+"]}}"), testEnv)
			if len(findings) == 0 {
				t.Fatal("no findings")
			}
			r := cfg.Servers[0].Rules[0]
			if r.When == nil || r.When.Text != test.when || len(r.Decides) != test.decides {
				t.Errorf("%+v", r)
			}
		})
	}
}
