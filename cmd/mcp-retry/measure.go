package main

import (
	"errors"
	"os"
	"syscall"

	"github.com/bentabol/mcp-retry/proxy"
	"github.com/bentabol/mcp-retry/proxy/metrics"
)

// measure has what is about to run counted, and the counts served at an address, from start on until stop is called. If they
// cannot be, nobody would see what goes wrong: that is an error, and nothing is started.
func measure(address string, o *proxy.Options) (start func(*proxy.Proxy) (stop func()), err error) {
	listener, err := metrics.Listen(address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, (&failure{status: exitFailed, message: err.Error()}).
			hint("another mcp-retry may have it: give each a port of its own")
	case errors.Is(err, os.ErrPermission):
		return nil, (&failure{status: exitFailed, message: err.Error()}).hint("ports below 1024 may need privileges: try 127.0.0.1:9464")
	case err != nil:
		return nil, usagef("%v", err)
	}
	var names []string
	for _, s := range o.Servers {
		names = append(names, s.Server.Name)
	}
	m := metrics.New(version(), names...)
	o.Meter, o.Reloaded = m.Meter, m.Reloaded
	return func(p *proxy.Proxy) (stop func()) {
		return m.Serve(listener, func() any { return p.State() })
	}, nil
}
