//go:build !race

package main

const (
	fieldSlower = 1
	fieldLarger = 1
)
