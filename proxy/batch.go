package proxy

import (
	"fmt"
	"strings"
)

// Most servers on Windows are started by a batch file: npx, npm, uvx and their like are .cmd there. No program can start one as
// it would a program, for it is cmd.exe that reads the command line then, by rules of its own. What is here does not depend on
// the system, so that it is tested everywhere.

// defaultPathExt is what Windows appends to the name of a command where PATHEXT is not set.
const defaultPathExt = ".COM;.EXE;.BAT;.CMD"

// findOnWindows finds a command as Windows does: in the directories of path, with the extensions of pathExt. The working
// directory is not searched: whoever may write there must not choose the program. isFile looks at the disk.
func findOnWindows(command, path, pathExt string, isFile func(string) bool) (file string, ok bool) {
	if pathExt == "" {
		pathExt = defaultPathExt
	}
	withExtension := func(file string) (string, bool) {
		name := file[strings.LastIndexAny(file, `\/:`)+1:]
		if strings.Contains(name, ".") && isFile(file) {
			return file, true
		}
		for _, ext := range strings.Split(strings.ToLower(pathExt), ";") {
			if ext == "" {
				continue
			}
			if !strings.HasPrefix(ext, ".") {
				ext = "." + ext
			}
			if isFile(file + ext) {
				return file + ext, true
			}
		}
		return "", false
	}
	if strings.ContainsAny(command, `\/:`) {
		return withExtension(command)
	}
	for _, dir := range strings.Split(path, ";") {
		dir = strings.Trim(dir, `"`)
		if dir == "" || dir == "." {
			continue
		}
		if file, ok := withExtension(strings.TrimRight(dir, `\/`) + `\` + command); ok {
			return file, true
		}
	}
	return "", false
}

// isBatch reports whether a file is one that cmd.exe runs.
func isBatch(file string) bool {
	file = strings.ToLower(strings.TrimRight(file, " .")) // Windows passes over both at the end of a name
	return strings.HasSuffix(file, ".bat") || strings.HasSuffix(file, ".cmd")
}

// batchLine is the command line of cmd.exe that runs a batch file with these arguments, each of which arrives as it is: no
// character in them can end the command and begin another one.
//
//	/d      no AutoRun commands of the registry
//	/e:ON   the extensions that hiding a percent sign needs
//	/v:OFF  an exclamation mark is one
//	/s /c   runs what stands between the outermost quotes
func batchLine(file string, args []string) (string, error) {
	if strings.ContainsAny(file, "\"%\r\n\x00") {
		return "", fmt.Errorf("exec: %q: the path of a batch file must hold no quote, percent sign or line break", file)
	}
	var line strings.Builder
	fmt.Fprintf(&line, `cmd.exe /d /e:ON /v:OFF /s /c ""%s"`, file)
	for i, arg := range args {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", fmt.Errorf("exec: %q: argument %d has a line break, which a batch file cannot be given", file, i+1)
		}
		line.WriteByte(' ')
		quoteForBatch(&line, arg)
	}
	line.WriteByte('"')
	return line.String(), nil
}

// quoteForBatch writes an argument in quotes. It is read twice: by cmd.exe, to which all but quotes and percent signs is text
// then, and by the program that the batch file starts, which reads a doubled quote as one, and backslashes before a quote as half
// as many.
func quoteForBatch(line *strings.Builder, arg string) {
	line.WriteByte('"')
	backslashes := 0
	for i := range len(arg) {
		switch c := arg[i]; c {
		case '\\':
			backslashes++
			line.WriteByte(c)
			continue
		case '"':
			line.WriteString(strings.Repeat(`\`, backslashes))
			line.WriteString(`""`)
		case '%':
			line.WriteString(`%%cd:~,%`) // a percent sign, and an empty part of a variable that always exists
		default:
			line.WriteByte(c)
		}
		backslashes = 0
	}
	line.WriteString(strings.Repeat(`\`, backslashes))
	line.WriteByte('"')
}
