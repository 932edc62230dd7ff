package schema

import (
	"strings"
	"testing"
)

// Nothing that a shell would have done with a command is left out in silence: what is marked is what the finding points at.
func TestACommandThatNeedsAShellIsWarnedOf(t *testing.T) {
	for command, want := range map[string]string{
		`npx server /data`:                      "",
		`npx server '$HOME' 'a|b' "a|b"`:        "",
		`npx "two words" a\ b "C:\\x" \$HOME`:   "",
		`npx ${SET} $${SET} "${UNSET:-a|b}"`:    "",
		`npx https://h/x?a=1&b=2 get_* --a=b`:   "",
		`sh -c 'TOKEN=x server $HOME | tee >x'`: "",
		`node C:\tools\server.js`:               `\`,
		`npx server | tee log`:                  "|",
		`npx server && echo`:                    "&&",
		`npx server >log`:                       ">log",
		`npx server 2>&1`:                       ">&1",
		`npx server; echo`:                      ";",
		`npx server $HOME/x`:                    "$HOME",
		`npx "$HOME/x"`:                         "$HOME",
		`npx $(pwd)`:                            "$(pwd)",
		"npx `pwd`":                             "`pwd`",
		`~/bin/server`:                          "~",
		`TOKEN=x npx server`:                    "TOKEN=x",
	} {
		text := "servers:\n  a:\n    timeout: 5\n    command: |-\n      " + command + "\n"
		_, findings := Load("mcp-shield.yaml", []byte(text), testEnv)
		got := ""
		for _, f := range findings {
			if f.ID != "no-shell" || f.Level != Warning || got != "" {
				t.Errorf("%s: %s", command, f)
			}
			line := strings.Split(text, "\n")[f.Pos.Line-1]
			got = line[f.Pos.Col-1:][:f.Pos.Len]
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}
