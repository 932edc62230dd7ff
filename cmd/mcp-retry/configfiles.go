package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// findConfigs are the config files among files and directories, each once; without any, that of the working directory.
func findConfigs(args []string) ([]string, error) {
	if len(args) == 0 {
		file, err := findConfig("")
		if err != nil {
			return nil, err
		}
		return []string{file}, nil
	}
	var found []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil || !info.IsDir() { // that a file cannot be read is told when it is
			found = append(found, arg)
			continue
		}
		inside, err := configsIn(arg)
		if err != nil {
			return nil, err
		}
		if len(inside) == 0 {
			return nil, usagef("no config in %q", arg).hint("there is no %s, *.mcp-retry.yaml or mcp-shield.yaml in it", strings.Join(defaultConfigs, ", "))
		}
		found = append(found, inside...)
	}
	var once []string
	for _, f := range found {
		if !slices.Contains(once, f) {
			once = append(once, f)
		}
	}
	return once, nil
}

// configsIn are the config files in a directory and below, in the order of their paths. Links are not followed.
func configsIn(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && slices.Contains([]string{".git", ".hg", ".svn", "node_modules"}, d.Name()):
			return fs.SkipDir
		case !d.IsDir() && isConfigName(d.Name()):
			if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
				return nil // to read a pipe would wait for ever
			}
			found = append(found, path)
		}
		return nil
	})
	var broken *fs.PathError
	if errors.As(err, &broken) {
		return nil, usagef("cannot read %q: %v", broken.Path, broken.Err)
	}
	return found, err
}

// isConfigName reports whether a file of that name holds a config.
func isConfigName(name string) bool {
	return slices.Contains(defaultConfigs, name) || name == "mcp-shield.yaml" ||
		strings.HasSuffix(name, ".mcp-retry.yaml") && name != ".mcp-retry.yaml"
}
