package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/bentabol/mcp-retry/schema"
)

// newCommand prepares the start of a server: its exact argv, no shell; our environment with the server's own variables over
// it; a process group of its own. Errors say what was looked for, and where.
func newCommand(s *schema.Server) (*exec.Cmd, error) {
	if s.Cwd != "" {
		switch info, err := os.Stat(s.Cwd); {
		case err != nil:
			return nil, fmt.Errorf("cwd %q: %w", s.Cwd, cause(err))
		case !info.IsDir():
			return nil, fmt.Errorf("cwd %q: not a directory", s.Cwd)
		}
	}
	env := os.Environ()
	path := os.Getenv("PATH")
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+s.Env[name])
		if name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH") {
			path = s.Env[name]
		}
	}
	file, err := lookPath(s.Command, s.Cwd, path)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: file, Args: append([]string{s.Command}, s.Args...), Dir: s.Cwd, Env: env}
	isolate(cmd)
	return cmd, throughShell(cmd)
}

// Startable says why a server cannot be started, as far as that shows without starting it: its directory is missing, or its
// program is missing or no program. nil = nothing stands in the way.
func Startable(s *schema.Server) error {
	cmd, err := newCommand(s)
	if err != nil {
		return err
	}
	place := inDir(cmd.Dir, cmd.Path)
	if unfit := fitToRun(place); unfit != nil {
		return fmt.Errorf("exec: %q: %w", s.Command, unfit)
	}
	if interpreter, ok := shebang(place); ok && runtime.GOOS != "windows" {
		if _, err := os.Stat(interpreter); errors.Is(err, fs.ErrNotExist) {
			return explainStart(cmd, err)
		}
	}
	return nil
}

// lookPath finds a command as a shell would that runs in dir with that PATH.
func lookPath(command, dir, path string) (string, error) {
	if command == "" {
		return "", errors.New("exec: the command is empty")
	}
	if runtime.GOOS == "windows" {
		isFile := func(file string) bool {
			info, err := os.Stat(inDir(dir, file))
			return err == nil && !info.IsDir()
		}
		if file, ok := findOnWindows(command, path, os.Getenv("PATHEXT"), isFile); ok {
			return filepath.Abs(inDir(dir, file)) // a relative one would start at dir once more
		}
		return "", fmt.Errorf("exec: %q: not found in PATH=%s", command, path)
	}
	if strings.Contains(command, "/") {
		return command, nil
	}
	var unfit error
	for _, entry := range filepath.SplitList(path) {
		file := filepath.Join(entry, command)
		if !filepath.IsAbs(file) {
			file = "." + string(filepath.Separator) + file
		}
		err := fitToRun(inDir(dir, file))
		if err == nil {
			return file, nil
		}
		if unfit == nil && !errors.Is(err, fs.ErrNotExist) {
			unfit = fmt.Errorf("exec: %q: %s: %w (PATH=%s)", command, file, err, path)
		}
	}
	if unfit != nil {
		return "", unfit
	}
	return "", fmt.Errorf("exec: %q: not found in PATH=%s", command, path)
}

// inDir returns the place of a file that is named from within dir.
func inDir(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// fitToRun says why a file cannot be run, as far as its kind and mode tell.
func fitToRun(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return cause(err)
	case info.IsDir():
		return errors.New("is a directory, not a program")
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return errors.New("permission denied: the file is not executable (chmod +x makes it so)")
	}
	return nil
}

// explainStart says in words why a command that was found could not be started. The system's own error is the same for a
// missing program and a missing interpreter, and for a directory and a file without permission.
func explainStart(cmd *exec.Cmd, err error) error {
	place := inDir(cmd.Dir, cmd.Path)
	name := cmd.Args[0]
	if unfit := fitToRun(place); unfit != nil {
		return fmt.Errorf("exec: %q: %w", name, unfit)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if interpreter, ok := shebang(place); ok {
			return fmt.Errorf("exec: %q: its interpreter %q, named in its first line, was not found", name, interpreter)
		}
		return fmt.Errorf("exec: %q: the file exists, but the loader that it needs does not: it was built for another system", name)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("exec: %q: %w: neither a program for this system nor a script whose first line names its interpreter (#!)", name, cause(err))
	}
	return fmt.Errorf("exec: %q: %w", name, cause(err))
}

// shebang returns the interpreter that a script names in its first line.
func shebang(file string) (string, bool) {
	f, err := os.Open(file)
	if err != nil {
		return "", false
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 256).ReadSlice('\n')
	rest, ok := strings.CutPrefix(string(line), "#!")
	if !ok {
		return "", false
	}
	// A carriage return is kept: a script with Windows line ends names an interpreter that ends in one.
	rest = strings.TrimLeft(strings.TrimSuffix(rest, "\n"), " \t")
	interpreter, _, _ := strings.Cut(strings.ReplaceAll(rest, "\t", " "), " ")
	return interpreter, interpreter != ""
}

// cause strips an error of the operation and path, which the caller names in the user's own words.
func cause(err error) error {
	var pathErr *fs.PathError
	var execErr *exec.Error
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case errors.As(err, &execErr):
		return execErr.Err
	}
	return err
}
