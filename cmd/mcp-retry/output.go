package main

import (
	"errors"
	"fmt"
	"io"
)

// output is stdout. It remembers that something could not be written: not everything that prints looks at that, and a command whose
// result is lost has failed.
type output struct {
	io.Writer
	err error // the first
}

func (o *output) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// lost adds to what a command came to that its output could not be written.
func (o *output) lost(err error) error {
	var f *failure
	switch {
	case o.err == nil:
		return err
	case err == nil || errors.Is(err, o.err) || errors.As(err, &f) && f.message == "": // what else went wrong has been said
		status := exitFailed
		if f != nil {
			status = f.status
		}
		return &failure{status: status, message: fmt.Sprintf("cannot write the output: %v", bare(o.err))}
	}
	return err
}

// unwrapped is what the output goes to in the end: [os.Stdout], unless in a test.
func unwrapped(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.Writer
	}
	return w
}

// unfailing is for the writer of help texts, which can only print an error, in its own words.
type unfailing struct{ io.Writer }

func (u unfailing) Write(text []byte) (int, error) {
	_, _ = u.Writer.Write(text) // the output remembers it
	return len(text), nil
}
