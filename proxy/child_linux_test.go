package proxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestAServerDiesWithAProxyThatIsKilled, which gets no chance to end it.
func TestAServerDiesWithAProxyThatIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playEnv+"=proxy-of leave-pid "+file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if text, err = os.ReadFile(file); err == nil {
			break
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	waitForEnd(t, pid)
}
