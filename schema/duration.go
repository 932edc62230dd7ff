package schema

import (
	"math"
	"strconv"
	"strings"
	"time"
)

var (
	durationText  = pattern(`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`)
	durationUnits = pattern(`([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)`)
	// What was meant as a duration, so that it is no expression: a number and perhaps a word.
	likeDuration = pattern(`^[-+]?\s*[0-9][0-9.,_]*\s*[\pL]*$|^([0-9]+(\.[0-9]+)?\s*[\pL]+\s*)+$`)
	oneQuantity  = pattern(`^([0-9]+(?:\.[0-9]+)?)\s*([\pL]*)$`)
)

// seconds returns the seconds of a duration as text: "500ms", "20s", "1m30s", "2h".
func seconds(s string) (float64, bool) {
	if !durationText().MatchString(s) {
		return 0, false
	}
	sum := 0.0
	for _, m := range durationUnits().FindAllStringSubmatch(s, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, false
		}
		sum += n * map[string]float64{"ms": 0.001, "s": 1, "m": 60, "h": 3600}[m[2]]
	}
	return sum, true
}

// toDuration turns seconds, already known to be within bounds, into a duration.
func toDuration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

const durationHint = `write seconds as a number (30, 0.5), or "500ms", "20s", "1m30s", "2h"`

// meantDuration proposes a spelling for a text that was meant as a duration; meant is "" if it is not certain.
func meantDuration(s string) (meant, hint string) {
	m := oneQuantity().FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return "", durationHint
	}
	n, unit := m[1], strings.ToLower(m[2])
	switch unit {
	case "":
		return n, "write " + n + " without quotes, or \"" + n + "s\""
	case "s", "sec", "secs", "second", "seconds":
		meant = n + "s"
	case "ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds":
		meant = n + "ms"
	case "m", "min", "mins", "minute", "minutes":
		meant = n + "m"
		if m[2] == "M" {
			return "", `write "` + meant + `"`
		}
	case "h", "hr", "hrs", "hour", "hours":
		meant = n + "h"
	case "d", "day", "days", "w", "week", "weeks":
		f, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return "", durationHint
		}
		if f *= 24; strings.HasPrefix(unit, "w") {
			f *= 7
		}
		meant = strconv.FormatFloat(f, 'f', -1, 64) + "h"
		return meant, `hours are the largest unit: write "` + meant + `"`
	default:
		return "", durationHint
	}
	return meant, `write "` + meant + `"`
}

// durationWords prints a bound as a user would write it.
func durationWords(seconds float64) string {
	switch {
	case seconds == 0:
		return "0"
	case seconds < 1:
		return strconv.FormatFloat(seconds*1000, 'f', -1, 64) + "ms"
	case math.Mod(seconds, 3600) == 0:
		return strconv.FormatFloat(seconds/3600, 'f', -1, 64) + "h"
	}
	return strconv.FormatFloat(seconds, 'f', -1, 64) + "s"
}

var byteText = pattern(`^([0-9]+(?:\.[0-9]+)?)(B|[kK]B|KiB|MB|MiB|GB|GiB)$`)

// bytesOf returns the number of bytes of a text such as "64MiB" or "500kB".
func bytesOf(s string) (float64, bool) {
	m := byteText().FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, false
	}
	unit := map[string]float64{
		"B": 1, "KB": 1e3, "KIB": 1 << 10, "MB": 1e6, "MIB": 1 << 20, "GB": 1e9, "GIB": 1 << 30,
	}[strings.ToUpper(m[2])]
	return math.Round(n * unit), true
}

// meantBytes proposes a spelling for a text that was meant as a size; meant is "" if it is not certain.
func meantBytes(s string) (meant, hint string) {
	m := likeBytes().FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return "", bytesHint
	}
	unit := map[string]string{"": "", "b": "B", "k": "kB", "kb": "kB", "ki": "KiB", "kib": "KiB", "m": "MB", "mb": "MB", "mi": "MiB", "mib": "MiB",
		"g": "GB", "gb": "GB", "gi": "GiB", "gib": "GiB"}[strings.ToLower(m[2])]
	if unit == "" {
		return m[1], "write " + m[1] + " without quotes"
	}
	return m[1] + unit, "write " + m[1] + unit
}

var likeBytes = pattern(`(?i)^([0-9]+(?:\.[0-9]+)?)\s*([kmg]?i?b?)$`)

const bytesHint = `write bytes as a number, or "64MiB", "500kB"`

// bytesWords prints a number of bytes as a user would write it.
func bytesWords(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size && math.Mod(n, u.size) == 0 {
			return strconv.FormatFloat(n/u.size, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// parseNumber returns a number as int64 if it is whole and written so, else as float64.
func parseNumber(s string) (any, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err
}
