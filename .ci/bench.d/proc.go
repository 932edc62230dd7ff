package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// cpu is the processor time that a process has taken so far; 0 where the system does not say.
func cpu(pid int) time.Duration {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var sum time.Duration
	for _, file := range threads {
		text, _ := os.ReadFile(file)
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err == nil {
			sum += time.Duration(ns)
		}
	}
	return sum
}

// resident is the memory of a process that is in use, and the most that ever was, in bytes; 0 where the system does not say.
func resident(pid int) (now, most int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			now = kib << 10
		}
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			most = kib << 10
		}
	}
	return now, most
}
