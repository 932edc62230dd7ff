package proxy

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropCode lets go of the pages of the program's own file: most of its code and tables only the start needs, such as what loads a
// config. What is used again comes back, page by page, from the system's cache of the file. Parts that were written to are no longer
// those of the file, and stay.
func dropCode() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	var start, end uint64 // of the mapping that the lines are about, if it is one of the program's that cannot be written to
	for line := range strings.Lines(string(maps)) {
		if place, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && !strings.HasSuffix(place, ":") {
			start, end = 0, 0
			if ours := strings.HasSuffix(rest, " "+program); ours && (strings.HasPrefix(rest, "r-xp ") || strings.HasPrefix(rest, "r--p ")) {
				start, end = parseRange(place)
			}
			continue
		}
		if name, value, _ := strings.Cut(line, ":"); name == "Anonymous" && end > 0 && strings.TrimSpace(value) == "0 kB" {
			unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED)
		}
	}
}

// parseRange reads two addresses, as in 400000-452000; 0 and 0 if it is none.
func parseRange(s string) (start, end uint64) {
	low, high, _ := strings.Cut(s, "-")
	start, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return 0, 0
	}
	if end, err = strconv.ParseUint(high, 16, 64); err != nil || end < start {
		return 0, 0
	}
	return start, end
}
