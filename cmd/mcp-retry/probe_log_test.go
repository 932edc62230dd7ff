package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestACheckKeepsOfAFloodOnlyWhatItTells(t *testing.T) {
	log := &probeLog{}
	write := func(line string) {
		t.Helper()
		for _, part := range []string{line[:len(line)/2], line[len(line)/2:] + "\n"} { // records need not come whole
			if n, err := log.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
	}
	write(`{"msg":"noise","detail":" "}`)
	for i := range 10_000 {
		write(fmt.Sprintf(`{"msg":"noise","detail":"out %d"}`, i))
		write(fmt.Sprintf(`{"msg":"server_stderr","text":"err %d"}`, i))
	}
	write(`{"msg":"noise","detail":"` + strings.Repeat("x", 2*mostRecord) + `"}`)
	write(`{"msg":"server_exit","detail":"exit status 3"}`)
	write(`{"msg":"server_stderr","text":""}`)
	if got := log.noise(); got != "out 0" {
		t.Errorf("the noise is %q", got)
	}
	if got := log.lastWords(nil).Error(); got != "exit status 3: err 9997 | err 9998 | err 9999" {
		t.Errorf("the last words are %q", got)
	}
	if kept := log.kept().text.Len(); kept > 1000 {
		t.Errorf("%d bytes were kept", kept)
	}
}
