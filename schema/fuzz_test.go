package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Whatever the bytes are, loading ends, explains itself, and gives a config that can be shown.
func FuzzLoad(f *testing.F) {
	spellings := []string{"a.yaml", "a.json", "a.cue"}
	for _, dir := range []string{"good", "faults"} {
		files, _ := filepath.Glob("testdata/" + dir + "/*")
		for _, file := range files {
			for i, s := range spellings {
				if src, err := os.ReadFile(file); err == nil && filepath.Ext(file) == filepath.Ext(s) {
					f.Add(byte(i), src)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, spelling byte, src []byte) {
		file := spellings[int(spelling)%len(spellings)]
		if file == "a.cue" && len(src) > 300 {
			return // a program, which may run for as long as it likes
		}
		cfg, findings := Load(file, src, testEnv)
		if cfg == nil && !findings.HasErrors() {
			t.Fatal("neither a config nor an error")
		}
		lines := strings.Count(strings.ReplaceAll(string(src), "\r", "\n"), "\n") + 1
		for _, x := range findings {
			if x.Pos.Line < 1 || x.Pos.Line > lines || x.Pos.Col < 1 || x.Message == "" || x.ID == "" {
				t.Errorf("%+v", x)
			}
		}
		var out bytes.Buffer
		findings.Render(&out, cfg.Mask(src), false)
		_ = findings.Silence(file, src, true)
		if mended, corrected := findings.Mend(src); len(corrected) > 0 {
			if again, _ := Load(file, mended, testEnv); again == nil {
				t.Errorf("mending broke the file:\n%s", mended)
			}
		}
		if cfg == nil {
			return
		}
		out.Reset()
		if err := WriteNormal(&out, cfg); err != nil {
			t.Fatal(err)
		}
		var back struct{ Servers yaml.Node }
		if err := yaml.Unmarshal(out.Bytes(), &back); err != nil {
			t.Fatalf("the normal form is no YAML: %v\n%s", err, out.String())
		}
		for _, s := range cfg.Servers {
			names := map[string]bool{}
			for _, r := range s.Rules {
				if names[r.Name] {
					t.Errorf("two rules are named %q", r.Name)
				}
				names[r.Name] = true
				for _, d := range r.Decides {
					if d.Expr != nil {
						for i := range len(d.Expr.Text) + 1 {
							if p := d.Expr.Place(i); r.Pos.Line > 0 && (p.Line < 1 || p.Line > lines) {
								t.Errorf("byte %d of %q is at %v", i, d.Expr.Text, p)
							}
						}
					}
				}
			}
		}
	})
}
