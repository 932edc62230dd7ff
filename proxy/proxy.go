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

	// Watch is the config file that Server and Policy, or Servers, are of: it is looked at each second, and what has changed in it
	// is in force from the next call on, unless it is faulty. Two looks in a row must find the same, since it may be in the middle
	// of being written. If the file is gone, the config stays as it is until there is one again. "" = nothing is watched.
	//
	// Calls in flight end under the old policy; breakers, limits, and what is cached or kept stay. A server is started anew, once
	// nothing is in flight, if its command, args, env or cwd has changed. Of several servers behind one endpoint those that were
	// added are started, those that were removed end once nothing is in flight there, and the client is told that the lists have
	// changed; so it is if the order of the servers or the separator of names is another. A max_message_bytes holds from the next
	// session on. A faulty file is refused whole: the log says why, and the old config stays in force.
	Watch string

	// Reread returns Server and Policy, or Servers and Separator, from the watched file as it is by now; nil = [Open] does. Its
	// other options are ignored.
	Reread func() (Options, error)

	// Reloaded is told of each change of the watched file: nil, or why it was refused. It must return at once; nil = nobody is told.
	Reloaded func(error)

	// Removed is told the name of each server that a changed file has none of any more, once nothing is in flight there. It must
	// return at once; nil = nobody is told.
	Removed func(server string)

	// Record is where everything that passes is written, a [RecordedLine] in JSON a line, without secrets as far as a
	// [schema.Redactor] knows them; nil = nowhere.
	Record io.Writer

	// Kill has the server's processes, and what these have started, killed as soon as it is closed, if the session is ending by
	// then: they are given no more time to end by themselves. nil = they have all the time that is usual.
	Kill <-chan struct{}

	Seed    uint64 // of jitter; 0 = a random one
	Version string // of mcp-retry
}

// A Proxy stands between clients and a server process that it starts for each of them.
type Proxy struct {
	options Options
	members []Member
	log     *logger
	running sessions

	tape *tape // nil = nothing is recorded
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
	if len(members) > 1 {
		if _, err := compose.New(boardConfig(members, &o)); err != nil {
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
	p := &Proxy{options: o, members: members, log: newLogger(o.Stderr, o.LogLevel, f)}
	if o.Record != nil {
		p.tape = &tape{out: o.Record, failed: func(err error) {
			p.log.record(time.Now(), &engine.Record{
				Level: engine.LevelError, Event: "recording_ended", Detail: "what passes from here on is not recorded: " + err.Error(),
			})
		}}
	}
	return p, nil
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
	for i, m := range p.members {
		servers[i] = m.Server
	}
	s := newSession(p.log, in, out, servers...)
	s.makers = &makers{proxy: p, seed: seed, secrets: schema.NewRedactor(servers...)}
	steppers := make([]stepper, len(p.members))
	for i, l := range s.links() {
		steppers[i], l.engine = s.makers.engine(p.members[i])
	}
	if len(steppers) == 1 {
		s.engine = steppers[0]
	} else {
		c := boardConfig(p.members, &p.options)
		for i, l := range s.links() {
			c.Servers[i].Engine, c.Servers[i].Meter = steppers[i], l.engine.Meter()
		}
		s.board, _ = compose.New(c) // New has seen that this works
	}
	s.removed, s.kill = p.options.Removed, p.options.Kill
	for _, server := range servers {
		p.log.record(time.Now(), &engine.Record{Event: "proxy_start", Server: server.Name, Detail: p.options.Version})
	}
	if p.options.Watch != "" {
		if w := newWatch(s, &p.options); w.isFile() {
			s.watch = w
			go w.run()
		}
	}
	defer p.running.enter(s)()
	s.serve(ctx.Done())
	p.log.flush(logFlush)
	return ctx.Err()
}

// boardConfig says how several servers become one endpoint. Their engines are still to be put in.
func boardConfig(members []Member, o *Options) compose.Config {
	c := compose.Config{Separator: o.Separator, Version: o.Version, LogLevel: engine.Level(o.LogLevel)}
	for _, m := range members {
		c.Servers = append(c.Servers, compose.Server{Config: m.Server})
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
