package main

import (
	"strconv"
	"time"
)

// Bounds of durations and of retries; they are those of call_timeout and max_retries in a config.
const (
	longestTimeout = 24 * time.Hour
	mostRetries    = 10
)

// durationFlag is a flag whose value is a duration as in a config: with units, or a number of seconds.
type durationFlag struct{ value **time.Duration }

func (f durationFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if seconds, notNumber := strconv.ParseFloat(text, 64); notNumber == nil {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || d <= 0 || d > longestTimeout {
		return usagef(`want a duration up to 24h, such as "60s", "500ms" or a number of seconds`)
	}
	*f.value = &d
	return nil
}

func (f durationFlag) String() string {
	if f.value == nil || *f.value == nil {
		return ""
	}
	return (*f.value).String()
}

func (f durationFlag) Type() string { return "DURATION" }

// fileFlag is a flag whose value is the name of a file, which stands for no stream: there is none that it could mean.
type fileFlag struct{ value *string }

func (f fileFlag) Set(text string) error {
	if text == "" || text == "-" {
		return usagef("want the name of a file")
	}
	*f.value = text
	return nil
}

func (f fileFlag) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

func (f fileFlag) Type() string { return "FILE" }

// retriesFlag is a flag whose value is a number of retries.
type retriesFlag struct{ value **int }

func (f retriesFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > mostRetries {
		return usagef("want a number from 0 to %d", mostRetries)
	}
	*f.value = &n
	return nil
}

func (f retriesFlag) String() string {
	if f.value == nil || *f.value == nil {
		return ""
	}
	return strconv.Itoa(**f.value)
}

func (f retriesFlag) Type() string { return "N" }
