//go:build race

package main

// fieldLarger is how many times larger the race detector makes the product, at most.
const fieldLarger = 4
