//go:build linux

package main

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// soakFootprints are looks at the process, in the order of time.
type soakFootprints []soakFootprint

type soakFootprint struct {
	footprint
	goroutines int
}

// watch looks at the process until the run is over.
func (s *soak) watch() (all soakFootprints) {
	look := time.NewTicker(soakLook)
	defer look.Stop()
	for {
		select {
		case <-s.stop:
			return all
		case <-look.C:
			all = append(all, soakFootprint{footprintOf(s.t, s.cmd.Process.Pid), int(s.page()["go_goroutines"])})
		}
	}
}

// page are the product's metrics.
func (s *soak) page() map[string]float64 {
	page, err := sumsOf(s.metrics)
	if err != nil {
		s.failf("the metrics are not served: %v", err)
	}
	return page
}

// sumsOf are the metrics served at an address: of each name the sum over all labels.
func sumsOf(address string) (map[string]float64, error) {
	client := http.Client{Timeout: soakPatience}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	sums := map[string]float64{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, _, _ := strings.Cut(lines.Text(), "{")
		name, _, _ = strings.Cut(name, " ")
		value, err := strconv.ParseFloat(lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:], 64)
		if err == nil && !strings.HasPrefix(name, "#") {
			sums[name] += value
		}
	}
	return sums, lines.Err()
}

// bounds are the least and the most of each.
func (all soakFootprints) bounds() (least, most soakFootprint) {
	for i, p := range all {
		if i == 0 {
			least = p
		}
		least.rss = min(least.rss, p.rss)
		most.rss = max(most.rss, p.rss)
		most.files = max(most.files, p.files)
		most.threads = max(most.threads, p.threads)
		most.children = max(most.children, p.children)
		most.zombies = max(most.zombies, p.zombies)
		most.goroutines = max(most.goroutines, p.goroutines)
	}
	return least, most
}

// check checks that the process stayed small, and did not grow once it was warm.
func (all soakFootprints) check(t *testing.T) {
	_, most := all.bounds()
	for what, over := range map[string]bool{
		"memory":     most.rss > soakMostKiB && !underRace(),
		"files":      most.files > soakMostFiles,
		"threads":    most.threads > soakMostThreads,
		"children":   most.children > 2, // one that is dying, and the next
		"goroutines": most.goroutines > soakMostGoroutines,
	} {
		if over {
			t.Errorf("too much %s: %v, %d goroutines", what, most, most.goroutines)
		}
	}
	const enough = 80 // looks, for a quarter to mean something
	if len(all) < enough {
		return
	}
	quarter := len(all) / 4
	_, second := all[quarter : 2*quarter].bounds()
	_, last := all[3*quarter:].bounds()
	if last.rss > second.rss+second.rss/2 || last.files > second.files+8 || last.threads > second.threads+8 || last.goroutines > second.goroutines+16 {
		t.Errorf("in its last quarter the process held %v, %d goroutines; in its second, %v, %d goroutines", last, last.goroutines, second, second.goroutines)
	}
}
