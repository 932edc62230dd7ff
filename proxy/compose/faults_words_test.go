package compose

import "testing"

func TestWhyAServerIsMissingReadsAsOneSentence(t *testing.T) {
	for detail, want := range map[string]string{
		"it is still starting": `The server "a" is not available: it is still starting`,
		"The server 'a' ended before it answered (exit status 3).": `The server "a" is not available: it ended before it answered (exit status 3).`,
		"The server 'a' is not available: not found. Nothing.":     `The server "a" is not available: not found. Nothing.`,
		"The server 'b' is busy":                                   `The server "a" is not available: The server 'b' is busy`,
	} {
		if got := unavailableText("a", detail); got != want {
			t.Errorf("%s: got %s", detail, got)
		}
	}
}
