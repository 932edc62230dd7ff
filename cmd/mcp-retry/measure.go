package main

import (
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/bentabol/mcp-retry/proxy"
	"github.com/bentabol/mcp-retry/proxy/metrics"
)

// measure has what is about to run counted, and the counts served at an address, from start on until stop is called. If they
// cannot be, nobody would see what goes wrong: that is an error, and nothing is started. An address that is none is wrong usage;
// one that cannot be had is a failure.
func measure(address string, o *proxy.Options) (start func(*proxy.Proxy) (stop func()), err error) {
	listener, err := metrics.Listen(address)
	var unknown *net.DNSError
	var refused *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, (&failure{status: exitFailed, message: err.Error()}).
			hint("another mcp-retry may have it: give each a port of its own")
	case errors.Is(err, os.ErrPermission):
		return nil, (&failure{status: exitFailed, message: err.Error()}).hint("ports below 1024 may need privileges: try 127.0.0.1:9464")
	case errors.As(err, &refused) && !errors.As(err, &unknown):
		return nil, &failure{status: exitFailed, message: err.Error()}
	case err != nil:
		return nil, usagef("%v", err)
	}
	var names []string
	for _, s := range o.Servers {
		names = append(names, s.Server.Name)
	}
	m := metrics.New(version(), names...)
	o.Meter, o.Reloaded, o.Removed = m.Meter, m.Reloaded, m.Forget
	return func(p *proxy.Proxy) (stop func()) {
		return m.Serve(listener, func() any { return p.State() })
	}, nil
}
