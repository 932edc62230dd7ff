package schema

import (
	"os"
	"testing"
)

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"everything.yaml", "readme.yaml"} {
		src, err := os.ReadFile("testdata/good/" + name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Load(name, src, testEnv)
			}
		})
	}
}

// What a process pays once: compiling the schema and the built-in policy.
func BenchmarkSchema(b *testing.B) {
	for b.Loop() {
		(&dialect{file: "schema.cue", text: schemaCUE}).config().fill()
	}
}
