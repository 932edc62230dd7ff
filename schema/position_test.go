package schema

import (
	"strings"
	"testing"
)

// firstExpr returns the first expression that the policy of a config states.
func firstExpr(t *testing.T, file, src string) *Expr {
	t.Helper()
	cfg, findings := Load(file, []byte(src), testEnv)
	if len(findings) > 0 || cfg == nil {
		t.Fatalf("findings: %v", findings)
	}
	for _, r := range cfg.Servers[0].Rules {
		for _, s := range r.Decides {
			if s.Expr != nil && r.Pos.Line > 0 {
				return s.Expr
			}
		}
	}
	t.Fatal("no expression")
	return nil
}

const rule = "servers:\n  é:\n    command: x\n    policy:\n      - "

// A CEL error must point at the very character in the file, however the expression is written there.
func TestEveryCharacterOfAnExpressionHasItsPlace(t *testing.T) {
	tests := []struct{ name, file, src, want string }{
		{"plain", "a.yaml", rule + "retry: error.code == -32603 && é == 1  # why", "error.code == -32603 && é == 1"},
		{"plain over lines", "a.yaml", rule + "retry: error.code == 1\n          || error.code == 2\n\n          || x\n", "error.code == 1 || error.code == 2\n|| x"},
		{"plain in a flow map", "a.yaml", rule + "{name: n, retry: error.code == 1 || a, max_retries: 3}\n", "error.code == 1 || a"},
		{"single quotes", "a.yaml", rule + `retry: 'error.message == ''é'' || x'`, "error.message == 'é' || x"},
		{"single quotes over lines", "a.yaml", rule + "retry: 'a == ''b''\n\n      || c\n      && d'", "a == 'b'\n|| c && d"},
		{"double quotes", "a.yaml", rule + `retry: "error.message == \"\u00e9\" || \x41 == 'b\\n' \U0001F600z"`, "error.message == \"é\" || A == 'b\\n' 😀z"},
		{"double quotes over lines", "a.yaml", rule + "retry: \"a ||\\\n      \\ b ||\n      c\"", "a || b || c"},
		{"literal block", "a.yaml", rule + "retry: |  # why\n          a == 'é' ||\n            b\n\n          || c\n", "a == 'é' ||\n  b\n\n|| c\n"},
		{"literal block, stripped", "a.yaml", rule + "retry: |-\n          a ||\n          b\n      - retry: false", "a ||\nb"},
		{"literal block, indentation stated", "a.yaml", rule + "retry: |2-\n            a ||\n          b\n", "  a ||\nb"},
		{"folded block", "a.yaml", rule + "retry: >\n          a == 1 ||\n          b == 2\n\n          || c\n            && d\n          || e\n", "a == 1 || b == 2\n|| c\n  && d\n|| e\n"},
		{"folded block, stripped", "a.yaml", rule + "retry: >-\n\n          a ||\n\n\n          b\n", "\na ||\n\nb"},
		{"anchor", "a.yaml", rule + "retry: &x error.code == 1\n", "error.code == 1"},
		{"tag", "a.yaml", rule + "retry: !!str error.code == 1\n", "error.code == 1"},
		{"alias", "a.yaml", "x-e: &x 'a == 1 || b'\n" + rule + "retry: *x\n", "a == 1 || b"},
		{"CRLF", "a.yaml", strings.ReplaceAll(rule+"retry: |\n          a ||\n          b\n", "\n", "\r\n"), "a ||\nb\n"},
		{"line separator before", "a.yaml", "# a\u2028# b\n" + rule + "retry: a == 1", "a == 1"},
		{"BOM", "a.yaml", "\ufeffservers: {a: {command: x, policy: [{retry: a == 1}]}}", "a == 1"},
		{"JSON in YAML", "a.yaml", `{"servers": {"é": {"command": "x", "policy": [{"retry": "a == \"é\u00e9\" || b"}]}}}`, `a == "éé" || b`},
		{"JSON with surrogates in YAML", "a.yaml", `{"servers": {"é": {"command": "x", "policy": [{"retry": "a == '\ud83d\ude00' || b"}]}}}`, `a == '😀' || b`},
		{"JSON", "a.json", "// c\n{\"servers\": {\"é\": {\"command\": \"x\", \"policy\": [\n\t{\"retry\": \"é == \\\"\\u00e9\\ud83d\\ude00\\\" \\/\\n|| b\"},]}}}", "é == \"é😀\" /\n|| b"},
		{"CUE", "a.cue", `servers: é: {command: "x", policy: [{retry: "é == \"\u00e9\" || \U0001F600 || b"}]}`, `é == "é" || 😀 || b`},
		{"CUE raw", "a.cue", `servers: a: {command: "x", policy: [{retry: #"a == "\#u00e9" || '\d' || b"#}]}`, `a == "é" || '\d' || b`},
		{"CUE lines", "a.cue", "servers: a: {\n\tcommand: \"x\"\n\tpolicy: [{\n\t\tretry: \"\"\"\n\t\t\ta == \"é\" ||\n\n\t\t\t  b || c\n\t\t\t\"\"\"\n\t}]\n}\n", "a == \"é\" ||\n\n  b || c"},
		{"CUE bytes", "a.cue", `servers: a: {command: "x", policy: [{retry: 'a == "b" || c'}]}`, `a == "b" || c`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := firstExpr(t, tt.file, tt.src)
			if e.Text != tt.want {
				t.Fatalf("text is %q, want %q", e.Text, tt.want)
			}
			if p := e.Place(0); p.Line != e.Pos.Line || p.Col != e.Pos.Col {
				t.Errorf("the expression is at %v, its first character at %v", e.Pos, p)
			}
			src := newSource("", string(stripBOM([]byte(tt.src))))
			last := Pos{}
			for i, c := range e.Text {
				p := e.Place(i)
				if p.Line < last.Line || p.Line == last.Line && p.Col < last.Col || p == last && c != ' ' && c != '\n' {
					t.Errorf("%q (byte %d) is at %v, before or at %v", c, i, p, last)
				}
				last = p
				line := []rune(src.line(p.Line))
				if c == '\n' || c == ' ' {
					continue // may be what a line break became
				}
				if p.Col > len(line) || line[p.Col-1] != c && line[p.Col-1] != '\\' {
					t.Fatalf("%q (byte %d) is said to be at %v, where the file has %q", c, i, p, string(line[min(p.Col-1, len(line)):]))
				}
			}
			if end := e.Place(len(e.Text)); end.Line < last.Line {
				t.Errorf("the end is at %v, before the last character at %v", end, last)
			}
		})
	}
}

func TestComputedTextHasThePlaceOfItsField(t *testing.T) {
	e := firstExpr(t, "a.cue", "_n: 5\nservers: a: {command: \"x\", policy: [{retry: \"error.code == \\(_n)\"}]}")
	if e.Text != "error.code == 5" || e.Place(8).Line != 2 || e.Place(8).Col != 45 {
		t.Errorf("%q is at %v", e.Text, e.Place(8))
	}
}
