//go:build !unix

package proxy

// ignoreBrokenPipes does nothing: there is no such signal here.
func ignoreBrokenPipes() (undo func()) { return func() {} }
