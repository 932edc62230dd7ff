package policytest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// endings are those of test files.
var endings = []string{".test.yaml", ".test.yml", ".test.json", ".test.jsonc", ".test.cue"}

// Find lists the test files under the paths: a file that is named is taken whatever its name, a folder is searched through, but
// for folders whose name begins with a dot, and node_modules. The error says that a path cannot be read.
func Find(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, unreadable(path, err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		err = filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return unreadable(at, err)
			case d.IsDir() && at != path && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
				return fs.SkipDir
			case !d.IsDir() && isTestFile(d.Name()):
				files = append(files, at)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

func isTestFile(name string) bool {
	return slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(name, ending) })
}
