package metrics

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Listen opens the port of the metrics: "127.0.0.1:9464", or ":9464" or "9464" for the same, as nobody else is meant to read
// them unless the address says so: "0.0.0.0:9464" is open to all. The error names the address.
func Listen(address string) (net.Listener, error) {
	full, err := complete(address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", full)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics on %s: %w", full, err)
	}
	return l, nil
}

// complete adds what an address leaves out.
func complete(address string) (string, error) {
	full := address
	if !strings.Contains(address, ":") {
		full = ":" + address
	}
	host, port, err := net.SplitHostPort(full)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return "", fmt.Errorf("%q is no address to serve metrics on: want HOST:PORT, such as 127.0.0.1:9464", address)
	} else if host == "" {
		return net.JoinHostPort("127.0.0.1", strconv.FormatUint(n, 10)), nil
	}
	return full, nil
}

// Handler serves the pages. What sessions returns is shown by /debug/state as JSON, beside the health of the servers; it is called
// at each request, from any goroutine.
func (m *Metrics) Handler(sessions func() any) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		Registry: m.registry, EnableOpenMetrics: true, MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	}))
	mux.HandleFunc("GET /healthz", m.serveHealth)
	mux.HandleFunc("GET /debug/state", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, statePage{m.health(time.Now()), sessions()})
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "mcp-retry\n\n/metrics\n/healthz\n/debug/state\n")
	})
	return mux
}

// Serve serves the pages on a listener until stop is called. It returns at once. Whoever is slow to ask or to read, or asks at
// length, is hung up on.
func (m *Metrics) Serve(l net.Listener, sessions func() any) (stop func()) {
	return m.serve(l, sessions, limits{header: 5 * time.Second, request: 10 * time.Second, answer: 20 * time.Second, idle: 2 * time.Minute, connections: 64})
}

// limits bound what those who ask for pages can take of the process.
type limits struct {
	header, request, answer, idle time.Duration // until the headers are there, until the whole request is, until the answer is out, between requests

	connections int // at a time; more wait until one is closed
}

// maxHeader bounds the headers of a request, in bytes; net/http allows some 4 KiB beyond.
const maxHeader = 16 << 10

func (m *Metrics) serve(l net.Listener, sessions func() any, limit limits) (stop func()) {
	handler := m.Handler(sessions)
	if at, ok := l.Addr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		handler = localOnly(handler)
	}
	s := &http.Server{
		Handler: handler, ReadHeaderTimeout: limit.header, ReadTimeout: limit.request, WriteTimeout: limit.answer, IdleTimeout: limit.idle,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       log.New(io.Discard, "", 0), // stderr holds the records of the proxy, and nothing else
	}
	go s.Serve(newDoor(l, limit.connections))
	return func() { s.Close() }
}

// door is a listener that lets so many connections in at a time; further ones wait outside, where they take no descriptor of ours.
type door struct {
	net.Listener
	places chan struct{} // taken
	closed chan struct{}
	close  func() error
}

func newDoor(l net.Listener, places int) *door {
	d := &door{Listener: l, places: make(chan struct{}, places), closed: make(chan struct{})}
	d.close = sync.OnceValue(func() error {
		close(d.closed)
		return l.Close()
	})
	return d
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case d.places <- struct{}{}:
	case <-d.closed:
		return nil, net.ErrClosed
	}
	c, err := d.Listener.Accept()
	if err != nil {
		<-d.places
		return nil, err
	}
	return &guest{Conn: c, leave: sync.OnceValue(func() error {
		defer func() { <-d.places }()
		return c.Close()
	})}, nil
}

func (d *door) Close() error { return d.close() }

// guest is a connection that gives its place back when it is closed.
type guest struct {
	net.Conn
	leave func() error
}

func (g *guest) Close() error { return g.leave() }

// localOnly refuses requests that were made for another host: a page in a browser could have its own name resolve to this
// machine, and so read what is meant for local eyes.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if host != "localhost" && (err != nil || !ip.IsLoopback()) {
			http.Error(w, "this page is for this machine alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// statePage is the answer of /debug/state.
type statePage struct {
	healthPage
	Sessions any `json:"sessions"`
}
