package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// limitProcess sets a limit of a process, and returns what it was before.
func limitProcess(t *testing.T, pid, resource int, most uint64) (before uint64) {
	t.Helper()
	var old syscall.Rlimit
	change := func(to *syscall.Rlimit) {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(resource),
			uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(&old)), 0, 0)
		if errno != 0 {
			t.Fatalf("prlimit: %v", errno)
		}
	}
	change(nil)
	before = old.Cur
	change(&syscall.Rlimit{Cur: most, Max: old.Max})
	return before
}

// roomFor is the limit of files under which a process can open so many more.
func roomFor(t *testing.T, pid, more int) uint64 {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	open := map[int]bool{}
	for _, entry := range entries {
		fd, _ := strconv.Atoi(entry.Name())
		open[fd] = true
	}
	limit := 0
	for ; more > 0 || open[limit]; limit++ {
		if !open[limit] {
			more--
		}
	}
	return uint64(limit)
}

// TestFaultNoFileCanBeOpened while the server must be started anew, from some point of its start on: the error says so, nothing
// leaks, and once files can be opened again the session goes on.
func TestFaultNoFileCanBeOpened(t *testing.T) {
	t.Parallel()
	for _, spare := range []int{0, 1, 2, 4, 5, 6, 7, 9, 11, 12, 14, 20} {
		t.Run(fmt.Sprint(spare, " to spare"), func(t *testing.T) {
			t.Parallel()
			f := startFault(t, "retry: {max_retries: 0}\n")
			f.open()
			pid := f.cmd.Process.Pid
			before := footprintOf(t, pid).files
			if err := syscall.Kill(f.pid(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			f.exits(1)
			old := limitProcess(t, pid, syscall.RLIMIT_NOFILE, roomFor(t, pid, spare))
			f.order("1", "pays", faultOrder{N: 1})
			r := f.answer("1")
			limitProcess(t, pid, syscall.RLIMIT_NOFILE, old)
			switch {
			case r.Result != nil && spare > 6: // the three pipes take as many; without the rest there are other ways
				r.done(t, 1, 1)
			case r.Result != nil || spare >= 20:
				t.Errorf("the answer is %s", r.line)
			case r.Error.Code != -31004 || !strings.Contains(r.Error.Message, "too many open files") || r.Error.Data.MayHaveExecuted != "no":
				t.Errorf("the answer is %s", r.line)
			default:
				f.kept(1, 0, 0)
			}
			f.order("2", "pays", faultOrder{N: 2})
			f.success("2").done(t, 2, 1)
			f.eventually("no more files than before", func() bool { return footprintOf(t, pid).files <= before })
		})
	}
}

const rlimitProcesses = 6 // RLIMIT_NPROC, which package syscall does not name

// TestFaultNoProcessCanBeStarted while the server must be started anew. Where the Go runtime happens to need a thread that it does
// not get, it ends the process, and there is nothing to be done about that; else the call gets an error, and once processes can be
// started again the session goes on. In either case nothing is done and nothing is left behind.
func TestFaultNoProcessCanBeStarted(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("the limit of processes does not bind root")
	}
	f := startFault(t, "retry: {max_retries: 0}\n")
	f.open()
	pid := f.cmd.Process.Pid
	if err := syscall.Kill(f.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.exits(1)
	old := limitProcess(t, pid, rlimitProcesses, 1)
	f.order("1", "pays", faultOrder{N: 1})
	ended := false
	f.until("an answer, or the end of mcp-retry", func() bool {
		select {
		case <-f.exited:
			ended = true
		default:
		}
		return ended || f.told["1"] > 0
	})
	f.kept(1, 0, 0)
	if ended {
		f.mu.Lock()
		defer f.mu.Unlock()
		if words := strings.Join(f.words, "\n"); !strings.Contains(words, "failed to create new OS thread") {
			t.Errorf("mcp-retry ended for another reason: %.2000s", words)
		}
		return
	}
	if e := f.failure("1", -31004).Error; !strings.Contains(e.Message, "resource temporarily unavailable") || e.Data.MayHaveExecuted != "no" {
		t.Errorf("the error is %q, %+v", e.Message, e.Data)
	}
	limitProcess(t, pid, rlimitProcesses, old)
	f.order("2", "pays", faultOrder{N: 2})
	f.success("2").done(t, 2, 1)
}
