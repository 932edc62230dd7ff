package main

import (
	"os"
	"strings"
	"testing"
)

func TestTheTableIsThatOfTheREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	latency := 180.4
	table := health{Name: "filesystem", Status: statusUp, LatencyMS: &latency, Detail: "ok"}.row(10) + "\n" +
		health{Name: "everything", Status: statusDown, Detail: noResponse(defaultCheckTimeout).Error()}.row(10) + "\n"
	if want := "[UP  ] filesystem 180.4ms ok\n[DOWN] everything - no response within 10.0s\n"; table != want || !strings.Contains(string(readme), want) {
		t.Errorf("the table is\n%s", table)
	}
}

func TestTheTableIsAlignedForNamesInAnyScript(t *testing.T) {
	for text, want := range map[string]int{"": 0, "github": 6, "naïve": 5, "nai\u0308ve": 5, "日本語サーバー": 14, "서버": 4, "ﾊﾝｶｸ": 4, "🚀x": 3} {
		if got := columns(text); got != want {
			t.Errorf("%q: %d columns, want %d", text, got, want)
		}
	}
	if got := padded("日本", 6) + "|"; got != "日本  |" {
		t.Errorf("got %q", got)
	}
}
