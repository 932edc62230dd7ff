//go:build unix

package proxy

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// playEnv names the environment variable that makes the test binary a process of a test: "ROLE" or "ROLE ARGUMENT".
const playEnv = "PROXY_TEST_PLAY"

func TestMain(m *testing.M) {
	if role := os.Getenv(playEnv); role != "" {
		os.Exit(play(role))
	}
	if code, ok := flaky.MainFromEnv(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// lifetime bounds every process of a test, so that a broken one leaves nothing behind.
const lifetime = 2 * patience

// play is the main function of a process of a test.
func play(role string) int {
	time.AfterFunc(lifetime, func() { os.Exit(99) })
	role, arg, _ := strings.Cut(role, " ")
	switch role {
	case "exit": // with a status, once stdin has a line
		readLine()
		code, _ := strconv.Atoi(arg)
		return code
	case "last-words": // many lines and then the end, in one go
		n, _ := strconv.Atoi(arg)
		for i := range n {
			fmt.Printf("{\"n\":%d}\n", i)
		}
		return 0
	case "echo":
		io.Copy(os.Stdout, os.Stdin)
	case "kill-self":
		readLine()
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "close-stdout":
		os.Stdout.Close()
		select {}
	case "close-stdin":
		os.Stdin.Close()
		fmt.Println(`"closed"`)
		select {}
	case "stubborn": // neither the end of stdin nor TERM impresses it
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(`"ready"`)
		io.Copy(io.Discard, os.Stdin)
		select {}
	case "obeys-term": // but not the end of stdin
		fmt.Println(`"ready"`)
		select {}
	case "deaf": // never reads its stdin
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(`"ready"`)
		select {}
	case "leave-pid": // writes its process id to a file and stays, whatever it is told
		signal.Ignore(syscall.SIGTERM)
		os.WriteFile(arg+".part", []byte(strconv.Itoa(os.Getpid())), 0o600)
		os.Rename(arg+".part", arg)
		select {}
	case "family": // leaves a child of its own behind, which holds its pipes
		return family(arg)
	case "stderr": // a flood of 1 MiB before each answer
		return floodStderr(arg)
	case "environment":
		fmt.Printf("%q\n", os.Getenv(arg))
		dir, _ := os.Getwd()
		fmt.Printf("%q\n", dir)
		fmt.Printf("%q\n", os.Args[1:])
		readLine()
	case "group":
		fmt.Println(syscall.Getpgrp() == os.Getpid())
		readLine()
	default:
		return playBench(role, arg)
	}
	return 0
}

// readLine waits for a line, or the end, on stdin.
func readLine() {
	b := make([]byte, 1)
	for {
		if n, err := os.Stdin.Read(b); err != nil || n == 1 && b[0] == '\n' {
			return
		}
	}
}

// family starts a child that says its process id and stays: in the same process group, or ("apart") in a session of its own.
func family(arg string) int {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playEnv+"=deaf")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if arg == "apart" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	fmt.Println(cmd.Process.Pid)
	readLine()
	return 7
}

// floodStderr writes 1 MiB to stderr for each line on stdin, ended as told, and then the line on stdout.
func floodStderr(end string) int {
	line := strings.Repeat("x", 1000)
	switch end {
	case "lines":
		line += "\n"
	case "returns":
		line += "\r"
	}
	b := make([]byte, 1<<10)
	for {
		n, err := os.Stdin.Read(b)
		if err != nil {
			return 0
		}
		for range 1 << 10 {
			os.Stderr.WriteString(line)
		}
		os.Stdout.Write(b[:n])
	}
}
