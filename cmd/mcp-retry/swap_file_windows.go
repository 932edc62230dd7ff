package main

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: a new file gets its owner and its permissions from the directory.
func keepOwner(*os.File, fs.FileInfo) {}
