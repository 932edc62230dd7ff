//go:build race

package main

// The race detector makes the product slower and larger: how many times, at most.
const (
	fieldSlower = 10
	fieldLarger = 4
)
