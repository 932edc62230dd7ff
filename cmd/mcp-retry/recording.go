package main

import "os"

// openRecording opens a file to append sessions to. If whoever wrote it last was killed in the middle of a line, that line is ended:
// what follows it can be read.
func openRecording(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return f, nil // a pipe, say, has no end to look at
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err == nil && last[0] != '\n' {
		if _, err := f.WriteString("\n"); err != nil {
			_ = f.Close() // the first error says it
			return nil, err
		}
	}
	return f, nil
}
