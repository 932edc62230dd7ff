//go:build !race

package main

const fieldLarger = 1
