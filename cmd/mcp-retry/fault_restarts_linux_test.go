package main

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"
)

var faultRestarts = flag.Int("restarts", 200, "how often TestFaultManyRestarts has the server start")

// briefServer is a server that ends with its first call. It starts in a millisecond.
const briefServer = `while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case $line in
  *'"method":"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"brief","version":"1"}}' ;;
  *'"method":"tools/list"'*) r='{"tools":[{"name":"work","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
  *'"method":"tools/call"'*) r='{"content":[{"type":"text","text":"'$$'"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
  case $line in *'"method":"tools/call"'*) exit ;; esac
done
`

// TestFaultManyRestarts: a server that ends after each call costs nothing that stays: no process, descriptor, thread, goroutine or
// memory.
func TestFaultManyRestarts(t *testing.T) {
	t.Parallel()
	f := newField(t)
	address := freeAddress(t)
	config := f.write("mcp-retry.yaml", fmt.Sprintf("servers:\n  brief:\n    command: /bin/sh\n    args: [%q]\n    retry: {max_retries: 10, base_delay: 0.001}\n"+
		"    circuit_breaker: {failure_threshold: 1000}\n", f.write("brief.sh", briefServer)))
	f.launch([]string{"run", "--log-level", "error", "--metrics", address, "--config", config}, nil, false)
	f.open()
	pid := f.cmd.Process.Pid
	quarter := max(*faultRestarts/4, 1)
	var looks [5]soakFootprint // after each quarter; the first one is for warming up
	began := time.Now()
	lives := map[string]bool{}
	for call := 0; len(lives) < 4*quarter; call++ {
		id := strconv.Itoa(call)
		f.call(id, "work", `{"n":`+id+`}`)
		lives[f.success(id).text()] = true
		f.forget()
		look := &looks[len(lives)/quarter]
		now := footprintOf(t, pid)
		look.rss = max(look.rss, now.rss)
		look.files = max(look.files, now.files)
		look.threads = max(look.threads, now.threads)
		look.zombies = max(look.zombies, now.zombies)
		look.children = max(look.children, now.children)
		if len(lives)%quarter == 0 {
			page, err := sumsOf(address)
			if err != nil {
				t.Fatal(err)
			}
			look.goroutines = int(page["go_goroutines"])
		}
	}
	t.Logf("%d lives in %v", len(lives), time.Since(began).Round(time.Millisecond))
	second, last := looks[1], looks[3]
	if last.children > 2 || last.files > second.files+16 || last.threads > second.threads+16 ||
		looks[4].goroutines > looks[1].goroutines+16 || last.rss > second.rss+second.rss/4+4<<10 {
		t.Errorf("in the last quarter the process held %v, %d goroutines; in the second, %v, %d goroutines",
			last, looks[4].goroutines, second, looks[1].goroutines)
	}
	f.eventually("no child that has ended and was not waited for", func() bool { return footprintOf(t, pid).zombies == 0 })
	if status := f.close(); status != exitFine {
		t.Errorf("exit status %d", status)
	}
	if left := processesOf(f.dir + "/brief.sh"); len(left) > 0 {
		t.Errorf("processes %v are left behind", left)
	}
}

// forget lets go of the frames that were taken.
func (f *field) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.frames[:0]
	for _, frame := range f.frames {
		if !frame.taken {
			kept = append(kept, frame)
		}
	}
	clear(f.frames[len(kept):])
	f.frames = kept
}
