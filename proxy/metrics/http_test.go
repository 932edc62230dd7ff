package metrics

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// serveWithin serves pages under these limits. Those that a test does not set it does not wait for.
func serveWithin(t *testing.T, limit limits) (address string) {
	t.Helper()
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*time.Duration{&limit.header, &limit.request, &limit.answer, &limit.idle} {
		if *d == 0 {
			*d = time.Hour
		}
	}
	if limit.connections == 0 {
		limit.connections = 100
	}
	t.Cleanup(New("v").serve(l, func() any { return "sessions" }, limit))
	return l.Addr().String()
}

// dial opens a connection and says something on it.
func dial(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

const wholeRequest = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// status reads an answer and returns its status.
func status(t *testing.T, c net.Conn) int {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// The test ends only if the server hangs up.
func TestWhoIsSlowToAskIsHungUpOn(t *testing.T) {
	for name, c := range map[string]struct {
		limit limits
		said  string
	}{
		"nothing":          {limits{header: time.Millisecond}, ""},
		"half a line":      {limits{header: time.Millisecond}, "GET / HT"},
		"half the headers": {limits{header: time.Millisecond}, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nA: "},
		"half the body":    {limits{request: time.Millisecond}, "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n123"},
		"no next request":  {limits{idle: time.Millisecond}, wholeRequest},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, serveWithin(t, c.limit), c.said)
			if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
		})
	}
}

func TestHeadersThatAreTooLargeAreRefused(t *testing.T) {
	address := serveWithin(t, limits{})
	for name, header := range map[string]string{
		"one":  "A: " + strings.Repeat("x", 2*maxHeader) + "\r\n",
		"many": strings.Repeat("A: x\r\n", maxHeader),
		"path": "",
	} {
		t.Run(name, func(t *testing.T) {
			path := "/"
			if header == "" {
				path += strings.Repeat("x", 2*maxHeader)
			}
			// No more than that is said, so that all of it is read and the answer is not lost with the connection.
			said := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + header
			conn := dial(t, address, said[:maxHeader+4096])
			if got := status(t, conn); got != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("status %d", got)
			}
		})
	}
	if got := status(t, dial(t, address, wholeRequest)); got != http.StatusOK {
		t.Errorf("the next request: status %d", got)
	}
}

// As many as may come in are slow; the next is served when they have been hung up on.
func TestSlowConnectionsDoNotKeepOthersOutForEver(t *testing.T) {
	address := serveWithin(t, limits{header: 20 * time.Millisecond, connections: 2})
	for range 10 {
		dial(t, address, "GET / HTTP/1.1\r\n")
	}
	for { // on a busy machine even a whole request may come too late; the test ends only if one is served
		answer, err := http.ReadResponse(bufio.NewReader(dial(t, address, wholeRequest)), nil)
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("status %d", answer.StatusCode)
		}
		return
	}
}

func TestNoMoreConnectionsAreLetInThanThereAreLimitsFor(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(l, 2)
	for range 3 {
		dial(t, l.Addr().String(), "")
	}
	var in []net.Conn
	for range 2 {
		c, err := d.Accept()
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, c)
	}
	third := make(chan net.Conn)
	accept := func() {
		c, _ := d.Accept()
		third <- c
	}
	go accept()
	select {
	case <-third:
		t.Fatal("the third was let in")
	default:
	}
	in[0].Close()
	in[0].Close() // a second time gives back nothing
	if in[0] = <-third; in[0] == nil || len(d.places) != 2 {
		t.Fatalf("let in: %v, and %d places are taken", in[0], len(d.places))
	}
	go accept()
	d.Close()
	if c := <-third; c != nil {
		t.Error("one was let in after the end")
	}
	for _, c := range in {
		c.Close()
	}
}
