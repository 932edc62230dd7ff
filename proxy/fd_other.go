//go:build !(darwin || linux || openbsd)

package proxy

import (
	"io"
	"os"
)

// newSource returns the source for a reader.
func newSource(r io.Reader) source { return newPlainSource(r) }

// newOutbox returns the outbox to a writer.
func newOutbox(w io.Writer) *outbox { return &outbox{w: w} }

// ownSource returns the source for our end of a pipe, which it takes over.
func ownSource(f *os.File) source { return &plainSource{r: f, owned: f, woken: make(chan struct{}, 1)} }

// ownOutbox returns the outbox to our end of a pipe, which it takes over.
func ownOutbox(f *os.File) *outbox { return &outbox{w: f, owned: f} }
