package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDemoShowsWhatItMeasured(t *testing.T) {
	const tries = 10 // the demo's waits are short: on a busy machine a call may take longer than its time
	for try := 1; ; try++ {
		var out bytes.Buffer
		u := &ui{stdin: strings.NewReader(""), stdout: &out, stderr: &out}
		played, err := u.demo(context.Background())
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		problems := append(factsAmiss(played), screenAmiss(out.String())...)
		if len(problems) == 0 {
			return
		}
		if try == tries {
			t.Fatalf("%s\n%s", strings.Join(problems, "\n"), out.String())
		}
	}
}

// factsAmiss are the facts of the demo that are not as they should be.
func factsAmiss(played []playedScene) (problems []string) {
	want := func(what string, got, want any) {
		if got != want {
			problems = append(problems, fmt.Sprintf("%s: got %v, want %v", what, got, want))
		}
	}
	scene := func(tool string) playedScene {
		return played[slices.IndexFunc(played, func(p playedScene) bool { return p.scene.tool == tool })]
	}
	read := scene("get_forecast")
	want("the read without", marksOf(read.without.calls), "✗")
	want("the read with", marksOf(read.with.calls), "✓")
	want("attempts of the read without", read.without.attempts, 1)
	want("attempts of the read with", read.with.attempts, 3)

	payment := scene("charge_card")
	want("the payments without", marksOf(payment.without.calls), "✗✓")
	want("the payments with", marksOf(payment.with.calls), "✗✓")
	want("charges without", payment.without.executions, 2)
	want("charges with", payment.with.executions, 1)

	rates := scene("get_rates")
	want("work for the slow read without", rates.without.executions, 3)
	want("work for the slow read with", rates.with.executions, 1)

	search := scene("search")
	want("the outage without", marksOf(search.without.calls), "✗✗✗✗✗✗✓")
	want("the outage with", marksOf(search.with.calls), "✗✗✗⊘⊘⊘✓")
	want("attempts in the outage without", search.without.attempts, 7)
	want("attempts in the outage with", search.with.attempts, 4)
	return problems
}

// screenAmiss is what is wrong with the screen: a fact that it does not tell, or its size.
func screenAmiss(text string) (problems []string) {
	for _, fact := range []string{
		"3 attempts: timeout, error -32000, success",
		"charged twice", "charged once: the repeat joined the first call",
		"the server worked 3 times", "the server worked once, the cache answered twice",
		"breaker: closed → open → half-open → closed",
		"idempotency_key: args.order",
	} {
		if !strings.Contains(text, fact) {
			problems = append(problems, fmt.Sprintf("the screen does not say %q", fact))
		}
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 40 {
		problems = append(problems, fmt.Sprintf("%d lines are more than one screen", len(lines)))
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 100 {
			problems = append(problems, fmt.Sprintf("the line is too long: %q", line))
		}
		if strings.Contains(line, "\x1b") {
			problems = append(problems, fmt.Sprintf("colour although this is no terminal: %q", line))
		}
	}
	return problems
}

// marksOf are the marks of calls in a row.
func marksOf(calls []called) string {
	var marks strings.Builder
	for _, c := range calls {
		_, mark := c.mark()
		marks.WriteString(mark)
	}
	return marks.String()
}

func TestADemoThatNobodyCanSeeHasFailed(t *testing.T) {
	var said bytes.Buffer
	u := &ui{stdin: strings.NewReader(""), stdout: fullDisk{}, stderr: &said}
	if _, err := u.demo(context.Background()); err != errFullDisk {
		t.Errorf("the error is %v", err)
	}
}

// fullDisk takes no byte.
type fullDisk struct{}

var errFullDisk = errors.New("no space left")

func (fullDisk) Write([]byte) (int, error) { return 0, errFullDisk }
