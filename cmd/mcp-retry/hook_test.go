package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestB80HookIsOverBeforeItsHostLosesPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		release := make(chan struct{})
		began := time.Now()
		err := (&ui{stdout: &out}).hook(context.Background(), func(u *ui) error {
			fmt.Fprintln(u.stdout, "[UP  ] fine")
			<-release
			return nil
		})
		if took := time.Since(began); err != nil || took != hookDeadline || took >= 15*time.Second {
			t.Errorf("it took %s: %v", took, err)
		}
		if want := "[UP  ] fine\nmcp-retry: check did not come to an end within 12s\n"; out.String() != want {
			t.Errorf("it said %q", out.String())
		}
		close(release)
	})
}

func TestHookSaysNoMoreThanASessionCanBear(t *testing.T) {
	var out bytes.Buffer
	err := (&ui{stdout: &out}).hook(context.Background(), func(u *ui) error {
		fmt.Fprintln(u.stdout, strings.Repeat("…", mostHookText))
		return usagef("and more")
	})
	if err != nil || out.Len() > mostHookText+8 || !strings.HasSuffix(out.String(), "…\n") {
		t.Errorf("%v: it said %d bytes", err, out.Len())
	}
}
