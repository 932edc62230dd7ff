package policy

import (
	"testing"

	"github.com/bentabol/mcp-retry/schema"
)

func TestAFindingSpansTheEscapesOfItsLastCharacter(t *testing.T) {
	cfg, findings := schema.Load("f.yaml", []byte("servers:\n  s:\n    command: x\n    policy:\n      - retry: \"b\\u006fgu\\x73 && tool.readOnly\"\n"), nil)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	_, findings = Compile(cfg.Servers[0])
	if len(findings) != 1 || findings[0].Pos.Col != 17 || findings[0].Pos.Len != len(`b\u006fgu\x73`) {
		t.Errorf("%+v", findings)
	}
}
