package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/compose"
	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// Log formats.
const (
	LogJSON   = "json"   // one JSON object a line
	LogPretty = "pretty" // one line for people; coloured on a terminal unless NO_COLOR is set
)

// logFlush is how long the last log records may take to be written.
const logFlush = 250 * time.Millisecond

// Options say what a [Proxy] runs and how it logs. [Open] makes them of a config file, [Parse] of a config in the program;
// [schema.Wrap] makes a Server of a bare command.
type Options struct {
	Server *schema.Server // the server to start; required, unless there are Servers
	Policy *policy.Policy // its rules, compiled; nil = [New] compiles them

	// Servers are several behind one endpoint, in place of Server and Policy, as package compose describes it. The first one
	// counts where two have the same.
	Servers   []Member
	Separator string // between the name of a server and that of its tool; "" = [compose.DefaultSeparator]

	Stderr    io.Writer  // where the log goes, and with it what the server writes to its stderr; nil = nowhere
	LogFormat string     // [LogJSON] or [LogPretty]; "" = [LogJSON]
	LogLevel  slog.Level // least level that is logged; the zero value is info

	// Meter returns what counts for a session with the server of that name; nil = nothing is counted. Package metrics has
	// one that is served to Prometheus.
	Meter func(server string) *engine.Meter

	// Watch is the config file that Server and Policy are of: it is looked at each second, and what has changed in it is in
	// force from the next call on, unless it is faulty. "" = nothing is watched.
	//
	// Calls in flight end under the old policy; breakers, limits, and what is cached or kept stay. The server is started
	// anew, once nothing is in flight, if its command, args, env or cwd has changed. A max_message_bytes, and a separator
	// between the names of servers and tools, hold from the next session on. A faulty file is refused whole: the log says why, and the old config stays in force.
	Watch string

	// Reread returns Server and Policy from the watched file as it is by now; nil = [Open] does. Its other options are ignored.
	Reread func() (Options, error)

	// Reloaded is told of each change of the watched file: nil, or why it was refused. It must return at once; nil = nobody is told.
	Reloaded func(error)

	// Record is where everything that passes is written, a [RecordedLine] in JSON a line, without secrets as far as
	// [schema.Redact] knows them; nil = nowhere. It works with one server.
	Record io.Writer

	Seed    uint64 // of jitter; 0 = a random one
	Version string // of mcp-retry
}

// A Proxy stands between clients and a server process that it starts for each of them.
type Proxy struct {
	options Options
	members []Member
	log     *logger
	running sessions

	recording sync.Mutex
}

// A Member is one of several servers behind one endpoint.
type Member struct {
	Server *schema.Server
	Policy *policy.Policy // its rules, compiled; nil = [New] compiles them
}

// members are the servers of the options, their rules compiled.
func (o *Options) members() ([]Member, error) {
	members := slices.Clone(o.Servers)
	if o.Server != nil {
		if len(members) > 0 {
			return nil, errors.New("proxy: there are both Server and Servers in the options: give one of them")
		}
		members = []Member{{o.Server, o.Policy}}
	}
	if len(members) == 0 {
		return nil, errors.New("proxy: there is no server in the options")
	}
	for i := range members {
		m := &members[i]
		if m.Server == nil {
			return nil, errors.New("proxy: a member of Servers has no server")
		}
		if err := sound(m.Server); err != nil {
			return nil, err
		}
		if m.Policy == nil {
			compiled, err := compile(m.Server)
			if err != nil {
				return nil, err
			}
			m.Policy = compiled
		}
	}
	return members, nil
}

// New returns a proxy. The error is about the options (a [ConfigError] if it is about rules); nothing is started. Proxies share
// nothing, so there may be several in one process.
func New(o Options) (*Proxy, error) {
	members, err := o.members()
	if err != nil {
		return nil, err
	}
	if o.Record != nil && len(members) > 1 {
		return nil, errors.New("only what passes to one server can be recorded: name it")
	}
	if len(members) > 1 {
		if _, err := compose.New(boardConfig(members, &o, nil)); err != nil {
			return nil, err
		}
	}
	var f formatter
	switch o.LogFormat {
	case LogJSON, "":
		f = &jsonFormatter{}
	case LogPretty:
		f = newPrettyFormatter(o.Stderr)
	default:
		return nil, fmt.Errorf("unknown log format %q: use %q or %q", o.LogFormat, LogJSON, LogPretty)
	}
	return &Proxy{options: o, members: members, log: newLogger(o.Stderr, o.LogLevel, f)}, nil
}

// Serve runs one session: it starts the server, reads the client's frames from in and writes frames to out. It returns nil
// once the client has closed in and all that was in flight is answered, or once the client takes no more output; and
// ctx.Err() if ctx ended it, which answers what is pending with errors. In either case the server process is gone.
//
// The usual in and out are [os.Stdin] and [os.Stdout]: pipes and sockets are read and written without intermediate
// goroutines. Out is non-blocking until Serve returns, and GOMAXPROCS is raised to 4 for good unless the environment states
// it. Any other reader and writer will do. Serve closes neither, and if a Read of in cannot be interrupted, it is left
// running when ctx ends the session.
func (p *Proxy) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	defer ignoreBrokenPipes()()
	spareProcessors()
	seed := p.options.Seed
	for seed == 0 {
		seed = rand.Uint64()
	}
	servers := make([]*schema.Server, len(p.members))
	engines := make([]*engine.Engine, len(p.members))
	for i, m := range p.members {
		servers[i] = m.Server
		if p.options.Record == nil {
			engines[i] = p.newEngine(m, seed+uint64(i), nil)
		}
	}
	var record *recorder
	if p.options.Record != nil {
		record = &recorder{out: p.options.Record, mu: &p.recording, server: servers[0].Name, calls: map[int64]string{}}
		engines[0] = p.newEngine(p.members[0], seed, record.observer())
		record.engine = engines[0]
		record.line(RecordedLine{At: time.Now(), What: "session"})
	}
	s := newSession(p.log, in, out, servers...)
	switch {
	case record != nil:
		s.engine = record
	case len(engines) == 1:
		s.engine = engines[0]
	default:
		s.board, _ = compose.New(boardConfig(p.members, &p.options, engines)) // New has seen that this works
	}
	for _, server := range servers {
		p.log.record(time.Now(), &engine.Record{Event: "proxy_start", Server: server.Name, Detail: p.options.Version})
	}
	if p.options.Watch != "" {
		go newWatch(s, &p.options).run()
	}
	defer p.running.enter(s, engines)()
	s.serve(ctx.Done())
	p.log.flush(logFlush)
	return ctx.Err()
}

// newEngine returns what decides for a server in one session.
func (p *Proxy) newEngine(m Member, seed uint64, observer *engine.Observer) *engine.Engine {
	var meter *engine.Meter
	if p.options.Meter != nil {
		meter = p.options.Meter(m.Server.Name)
	}
	return engine.New(engine.Config{
		Server: m.Server, Policy: m.Policy, Seed: seed, LogLevel: engine.Level(p.options.LogLevel),
		CompileSchema: compileSchema,
		Meter:         meter,
		Observer:      observer,
	})
}

// boardConfig says how several servers become one endpoint; engines may be nil where only the names are of interest.
func boardConfig(members []Member, o *Options, engines []*engine.Engine) compose.Config {
	c := compose.Config{Separator: o.Separator, Version: o.Version, LogLevel: engine.Level(o.LogLevel)}
	for i, m := range members {
		server := compose.Server{Config: m.Server}
		if engines != nil {
			server.Engine = engines[i]
		}
		c.Servers = append(c.Servers, server)
	}
	return c
}

// spareProcessors sees to it that the two readers, which nearly always sit in a blocking read, do not hold all of the
// scheduler's processors: on a machine with two cores, every frame would wait for one to be taken back, at the cost of a
// wake-up or two.
func spareProcessors() {
	const enough = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < enough {
		runtime.GOMAXPROCS(enough)
	}
}
