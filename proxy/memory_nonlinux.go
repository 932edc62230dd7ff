//go:build !linux

package proxy

// dropCode does nothing: the system lets go of what is not used in its own time.
func dropCode() {}
