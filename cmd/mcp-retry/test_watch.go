package main

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// watchPause is how often files are looked at: soon enough for a person, and no work for the computer.
const watchPause = 300 * time.Millisecond

// watchTests runs the tests, and again whenever a file that they depend on has changed, until it is told to end.
func (u *ui) watchTests(paths []string, t *testRun) error {
	ctx, stop := untilSignal()
	defer stop()
	for {
		sources, err := u.test(paths, t)
		u.finish(err)
		slices.Sort(sources) // several test files may be about one config
		sources = slices.Compact(sources)
		files := len(sources)
		for _, file := range sources[:files:files] {
			sources = append(sources, filepath.Dir(file)) // a folder changes when a file comes or goes
		}
		sources = append(sources, paths...)
		seen := lookAt(sources)
		u.warnf("watching %s; interrupt to end", counted(files, "file"))
		for changed := false; !changed; {
			select {
			case <-ctx.Done():
				return signalled(ctx)
			case <-time.After(watchPause):
			}
			now := lookAt(sources)
			for file, at := range now {
				changed = changed || !seen[file].Equal(at)
			}
		}
	}
}

// lookAt says when files were written last; the zero time stands for one that is not there.
func lookAt(files []string) map[string]time.Time {
	times := map[string]time.Time{}
	for _, file := range files {
		times[file] = time.Time{}
		if info, err := os.Stat(file); err == nil {
			times[file] = info.ModTime()
		}
	}
	return times
}
