package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/bentabol/mcp-retry/proxy"
	"github.com/spf13/cobra"
)

// logFlags are the flags of the commands that run a session: how it can be watched.
type logFlags struct{ format, level, metrics, record string }

func (f *logFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "log-format", proxy.LogJSON, "how to log on stderr: json, or pretty for people")
	cmd.Flags().StringVar(&f.level, "log-level", "info", "the least level to log: debug, info, warn or error")
	cmd.Flags().StringVar(&f.metrics, "metrics", "", "serve /metrics, /healthz and /debug/state at `ADDRESS`, such as 127.0.0.1:9464")
	cmd.Flags().Var(fileFlag{&f.record}, "record", "append all that passes to `FILE`, without secrets, for mcp-retry replay")
}

// read are the values of the flags.
func (f *logFlags) read() (format string, level slog.Level, err error) {
	switch f.format {
	case proxy.LogJSON, proxy.LogPretty:
	default:
		return "", 0, usagef("unknown log format %q", f.format).hint("there is json and pretty")
	}
	switch strings.ToLower(f.level) {
	case "debug":
		level = slog.LevelDebug
	case "info":
		level = slog.LevelInfo
	case "warn", "warning":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		return "", 0, usagef("unknown log level %q", f.level).hint("there is debug, info, warn and error")
	}
	return f.format, level, nil
}

// serve runs one session between stdin and stdout.
func (u *ui) serve(servers []prepared, from origin, flags *logFlags) error {
	format, level, err := flags.read()
	if err != nil {
		return err
	}
	u.warnOfPlaceholders()
	options := proxy.Options{
		Stderr: u.stderr, LogFormat: format, LogLevel: level, Version: version(),
		Watch: from.file, Reread: from.reread, Separator: from.separator,
	}
	for _, s := range servers {
		options.Servers = append(options.Servers, proxy.Member{Server: s.server, Policy: s.policy})
	}
	start := func(*proxy.Proxy) (stop func()) { return func() {} }
	if flags.metrics != "" {
		if start, err = measure(flags.metrics, &options); err != nil {
			return err
		}
	}
	if flags.record != "" {
		file, err := openRecording(flags.record)
		if err != nil {
			return usagef("cannot record: %v", err)
		}
		defer file.Close()
		options.Record = file
	}
	session, err := proxy.New(options)
	if err != nil {
		return usagef("%v", err)
	}
	defer start(session)()
	ctx, stop := untilSignalBut(func() bool { return u.reloads(from) && session.Reload() })
	defer stop()
	before := startable(servers)
	if session.Serve(ctx, u.stdin, unwrapped(u.stdout)) != nil {
		return signalled(ctx)
	}
	if before != nil && startable(servers) != nil {
		return before
	}
	return nil
}

// startable says why none of the servers could be started; nil = one could. It is no reason not to begin: the client is told in
// its own language when it asks, and the program may be put right meanwhile.
func startable(servers []prepared) error {
	var first error
	for _, s := range servers {
		err := proxy.Startable(s.server)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// signalError is why a context of [untilSignal] ended.
type signalError struct{ signal syscall.Signal }

func (e signalError) Error() string { return e.signal.String() }

// reloads reports whether a hang-up is meant as a request to look at the config file, as services take it: there is a file, and the
// signal cannot be from the terminal that the client sat at, for it is not a terminal that we read from. A client that ends with its
// terminal closes our stdin, which ends us too.
func (u *ui) reloads(from origin) bool {
	stdin, ok := u.stdin.(*os.File)
	if from.file == "" || !ok {
		return from.file != ""
	}
	info, err := stdin.Stat()
	return err != nil || info.Mode()&os.ModeCharDevice == 0
}

// untilSignal returns a context that ends when we are told to end: by an interrupt, a request to terminate, or a hang-up (unless
// that is ignored, as under nohup). Further signals change nothing, so that the server is ended in order.
func untilSignal() (ctx context.Context, stop func()) {
	return untilSignalBut(func() bool { return false })
}

// untilSignalBut is [untilSignal] where a hang-up may be taken as a request to reload: reload does it and reports whether it did.
func untilSignalBut(reload func() bool) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		for s := range signals {
			if s == syscall.SIGHUP && reload() {
				continue
			}
			if s, ok := s.(syscall.Signal); ok {
				cancel(signalError{s})
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// signalled is the error of a command that was ended by a signal: its status is what a shell would say.
func signalled(ctx context.Context) error {
	var s signalError
	if errors.As(context.Cause(ctx), &s) {
		return &failure{status: 128 + int(s.signal)}
	}
	return context.Cause(ctx)
}
