package proxy

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

func TestCodeThatIsNotUsedIsLetGo(t *testing.T) {
	before := residentOfFiles(t)
	dropCode()
	if after := residentOfFiles(t); after >= before {
		t.Errorf("%d KiB of files were resident, and then %d", before, after)
	}
}

// residentOfFiles is how much of the files that this process maps is resident, in KiB.
func residentOfFiles(t *testing.T) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Skip("this system does not tell RssFile")
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

func TestRangesOfAddresses(t *testing.T) {
	for text, want := range map[string][2]uint64{
		"00400000-00452000":     {0x400000, 0x452000},
		"7f2c-7f2c":             {0x7f2c, 0x7f2c},
		"7f2d-7f2c":             {},
		"-1":                    {},
		"1-":                    {},
		"":                      {},
		"1-fffffffffffffffffff": {},
	} {
		if start, end := parseRange(text); start != want[0] || end != want[1] {
			t.Errorf("%q is read as %x to %x", text, start, end)
		}
	}
}
