package schema

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used: most are for faulty files alone, and a proxy that
// starts has no time for them.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
