package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A footprint is what a process holds of the machine.
type footprint struct {
	rss, peak int // KiB of memory, and the most there were
	files     int // open descriptors
	threads   int
	children  int
	zombies   int // children that have ended and were not waited for
}

func (p footprint) String() string {
	return fmt.Sprintf("%d KiB, %d files, %d threads, %d children, %d zombies", p.rss, p.files, p.threads, p.children, p.zombies)
}

// footprintOf looks at a process, which must run.
func footprintOf(t testing.TB, pid int) footprint {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	p := footprint{rss: numberIn(status, "VmRSS:"), peak: numberIn(status, "VmHWM:"), threads: numberIn(status, "Threads:"), files: len(files)}
	for _, child := range childrenOf(pid) {
		p.children++
		if processState(child) == 'Z' {
			p.zombies++
		}
	}
	return p
}

// numberIn is the number that stands after a word in /proc/PID/status.
func numberIn(status []byte, word string) int {
	_, rest, _ := bytes.Cut(status, []byte("\n"+word))
	fields := bytes.Fields(rest[:min(len(rest), 64)])
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(string(fields[0]))
	return n
}

// childrenOf lists the children of all threads of a process.
func childrenOf(pid int) []int {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // none if it has ended
	var all []int
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name())) // the thread may have ended
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// processesOf lists the processes that run and have a word among their arguments.
func processesOf(word string) []int {
	entries, _ := os.ReadDir("/proc")
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline") // it may have ended
		for _, arg := range bytes.Split(line, []byte{0}) {
			if string(arg) == word && runs(pid) {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}
