package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// errChanged means that somebody else wrote the file while we worked on it.
var errChanged = errors.New("it was changed by another program in the meantime")

// writeNew writes a file that must not exist, or replaces it. A new one is for its owner alone: what we take from the files
// of clients may hold a secret that does not look like one.
func writeNew(path string, text []byte, replace bool) error {
	if replace {
		if before, err := os.ReadFile(path); err == nil {
			return swapFile(path, before, text)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// testOnlyBeforeReplace is called between the last look at a file and its replacement.
var testOnlyBeforeReplace = func() {}

// swapFile puts after in the place of a file that holds before, at once: whoever reads it finds the one or the other. Its
// mode and owner stay, and a symbolic link goes on pointing to it. If the file does not hold before any more, it is left alone.
func swapFile(path string, before, after []byte) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o200 == 0 {
		return errors.New("it is read-only")
	}
	temporary, err := os.CreateTemp(filepath.Dir(real), "."+filepath.Base(real)+".*.tmp")
	if err != nil {
		return fmt.Errorf("no file can be made in %q: %w", filepath.Dir(real), pathCause(err))
	}
	defer os.Remove(temporary.Name()) // after the renaming there is none
	_, err = temporary.Write(after)
	keepOwner(temporary, info)
	err = errors.Join(err, temporary.Chmod(info.Mode().Perm()), temporary.Sync(), temporary.Close())
	if err != nil {
		return err
	}
	testOnlyBeforeReplace()
	now, err := os.ReadFile(real)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, before) {
		return errChanged
	}
	return os.Rename(temporary.Name(), real)
}

// backupSuffix is what the name of a backup ends in; from the second on a number follows.
const backupSuffix = ".mcp-retry-backup"

// backups are the backups of a file, the newest first. Any of them may have been deleted.
func backups(path string) []string {
	numbers := backupNumbers(path)
	found := make([]string, len(numbers))
	for i, n := range numbers {
		found[i] = backupName(path, n)
	}
	return found
}

// backupNumbers are the numbers of the backups of a file, the highest first: it is that of the newest.
func backupNumbers(path string) (numbers []int) {
	beside, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	for _, other := range beside {
		number, ok := strings.CutPrefix(other.Name(), filepath.Base(path)+backupSuffix)
		if ok && number == "" {
			numbers = append(numbers, 1)
		} else if n, err := strconv.Atoi(strings.TrimPrefix(number, ".")); ok && err == nil && n > 1 && number == fmt.Sprintf(".%d", n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	return numbers
}

func backupName(path string, n int) string {
	if n == 1 {
		return path + backupSuffix
	}
	return fmt.Sprintf("%s%s.%d", path, backupSuffix, n)
}

// backUp copies what a file holds to a new backup and returns its name. If the newest says the same, that will do, and none is
// made.
func backUp(path string, text []byte) (name string, made bool, err error) {
	last := 0
	if numbers := backupNumbers(path); len(numbers) > 0 {
		last = numbers[0]
		if newest, err := os.ReadFile(backupName(path, last)); err == nil && bytes.Equal(newest, text) {
			return backupName(path, last), false, nil
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", false, err
	}
	name = backupName(path, last+1)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return "", false, err
	}
	_, err = f.Write(text)
	keepOwner(f, info)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(name)
		return "", false, err
	}
	return name, true, nil
}

// pathCause strips the operation and the path of an error: whoever tells it names the file in the user's own words.
func pathCause(err error) error {
	var broken *fs.PathError
	if errors.As(err, &broken) {
		return broken.Err
	}
	return err
}
