package proxy

import (
	"slices"
	"strings"
	"testing"
)

func TestB73CommandsAreFoundWithTheExtensionsOfWindows(t *testing.T) {
	disk := []string{`C:\Program Files\nodejs\npx.cmd`, `C:\Program Files\nodejs\npx`, `C:\tools\uvx.exe`, `C:\tools\npx.ps1`, `C:\tools\a.b.exe`, `.\here.exe`}
	isFile := func(file string) bool { return slices.Contains(disk, file) }
	const path = `C:\tools\;;.;"C:\Program Files\nodejs"`
	for command, want := range map[string]string{
		"npx":                             `C:\Program Files\nodejs\npx.cmd`, // the one without extension is for other shells
		"npx.cmd":                         `C:\Program Files\nodejs\npx.cmd`,
		`C:\Program Files\nodejs\npx.cmd`: `C:\Program Files\nodejs\npx.cmd`,
		`C:\Program Files\nodejs\npx`:     `C:\Program Files\nodejs\npx.cmd`,
		"uvx":                             `C:\tools\uvx.exe`,
		"a.b":                             `C:\tools\a.b.exe`,
		"here":                            "", // the working directory is not searched
		`.\here`:                          `.\here.exe`,
		"gone":                            "",
		"npx.ps1":                         `C:\tools\npx.ps1`,
	} {
		if got, ok := findOnWindows(command, path, ".COM;.EXE;.BAT;.CMD;.JS", isFile); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
	if got, _ := findOnWindows("npx", path, "", isFile); got != `C:\Program Files\nodejs\npx.cmd` {
		t.Errorf("without PATHEXT: %q", got)
	}
}

func TestB73ArgumentsOfABatchFileArriveAsTheyAre(t *testing.T) {
	for _, file := range []string{`C:\x\npx.cmd`, `C:\x\NPX.CMD`, `C:\x\a.bat`, `C:\x\a.bat. .`} {
		if !isBatch(file) {
			t.Errorf("%s is a batch file", file)
		}
	}
	for _, file := range []string{`C:\x\npx.exe`, `C:\x\cmd`, `C:\x.bat\y`} {
		if isBatch(file) {
			t.Errorf("%s is no batch file", file)
		}
	}
	const begin = `cmd.exe /d /e:ON /v:OFF /s /c ""C:\Program Files\nodejs\npx.cmd"`
	for arg, want := range map[string]string{
		"-y":                 `"-y"`,
		"":                   `""`,
		"two words":          `"two words"`,
		`a & calc.exe`:       `"a & calc.exe"`,
		`a" & calc.exe & "b`: `"a"" & calc.exe & ""b"`,
		`%PATH%`:             `"%%cd:~,%PATH%%cd:~,%"`,
		`C:\dir\`:            `"C:\dir\\"`,
		`a\"b`:               `"a\\""b"`,
		`^|<>!()`:            `"^|<>!()"`,
		"ünï":                `"ünï"`,
	} {
		line, err := batchLine(`C:\Program Files\nodejs\npx.cmd`, []string{arg})
		if err != nil || line != begin+" "+want+`"` {
			t.Errorf("%q: got %s, %v", arg, line, err)
		}
	}
	for _, arg := range []string{"a\nb", "a\rb", "a\x00b"} {
		if line, err := batchLine("npx.cmd", []string{"fine", arg}); err == nil || !strings.Contains(err.Error(), "argument 2") {
			t.Errorf("%q: got %s, %v", arg, line, err)
		}
	}
	if _, err := batchLine(`C:\"x".cmd`, nil); err == nil {
		t.Error("a quote in the path of a batch file was accepted")
	}
}

// readByProgram is how the program behind a batch file splits its command line: the rules of the C runtime of Windows.
func readByProgram(line string) (args []string) {
	for i := 0; i < len(line); {
		if line[i] == ' ' {
			i++
			continue
		}
		var arg strings.Builder
		for quoted := false; i < len(line) && (quoted || line[i] != ' '); {
			n := 0
			for i < len(line) && line[i] == '\\' {
				n, i = n+1, i+1
			}
			if i >= len(line) || line[i] != '"' {
				arg.WriteString(strings.Repeat(`\`, n))
				if n == 0 {
					arg.WriteByte(line[i])
					i++
				}
				continue
			}
			arg.WriteString(strings.Repeat(`\`, n/2))
			switch {
			case n%2 == 1:
				arg.WriteByte('"')
				i++
			case quoted && i+1 < len(line) && line[i+1] == '"':
				arg.WriteByte('"')
				i += 2
			default:
				quoted = !quoted
				i++
			}
		}
		args = append(args, arg.String())
	}
	return args
}

// readByShell is what cmd.exe makes of a command line: variables are replaced, and ok says that nothing outside of quotes means
// anything to it.
func readByShell(line string) (out string, ok bool) {
	line = strings.ReplaceAll(line, `%%cd:~,%`, "\x00")
	if strings.Contains(line, "%") {
		return "", false
	}
	quoted := false
	for _, c := range line {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && strings.ContainsRune("&|<>^()@!", c):
			return "", false
		}
	}
	return strings.ReplaceAll(line, "\x00", "%"), true
}

func FuzzB73ArgumentsOfABatchFile(f *testing.F) {
	for _, arg := range []string{"", "a b", `"`, `\"`, `\\"&x`, `%a%`, `a\`, `"" & x`, `^"`, `%cd:~,%`, `%%`} {
		f.Add(arg, "x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		line, err := batchLine(`C:\npx.cmd`, []string{a, b})
		if err != nil || strings.Contains(a+b, "\x00") {
			return
		}
		line = strings.TrimSuffix(strings.TrimPrefix(line, `cmd.exe /d /e:ON /v:OFF /s /c "`), `"`)
		read, ok := readByShell(line)
		if got := readByProgram(read); !ok || len(got) != 3 || got[1] != a || got[2] != b {
			t.Errorf("%q %q arrive as %q through %s", a, b, got, line)
		}
	})
}
