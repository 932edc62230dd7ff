package proxy

import (
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// makers make what decides for the servers of one session. They are not safe for concurrent use.
type makers struct {
	proxy   *Proxy
	seed    uint64           // of the next engine
	secrets *schema.Redactor // of all servers
}

// engine returns the engine for a server, and what the session is to step: the engine, or what records it.
func (k *makers) engine(m Member) (stepper, *engine.Engine) {
	p := k.proxy
	c := engine.Config{
		Server: m.Server, Policy: m.Policy, Seed: k.seed, LogLevel: engine.Level(p.options.LogLevel),
		CompileSchema: compileSchema,
		TakesBack:     true,
	}
	k.seed++
	k.secrets.Learn(m.Server)
	if p.options.Meter != nil {
		c.Meter = k.discreet(p.options.Meter(m.Server.Name))
	}
	if p.tape == nil {
		e := engine.New(c)
		return e, e
	}
	r := newRecorder(p.tape, m.Server.Name, k.secrets)
	c.Observer = r.observer()
	e := engine.New(c)
	r.engine = e
	return r, e
}

// discreet is a meter that is told no secrets: a rule may make the scope of a breaker of one.
func (k *makers) discreet(m *engine.Meter) *engine.Meter {
	if m == nil {
		return nil
	}
	d := *m
	d.Breaker = func(scope, from, to string, until time.Time) { m.Breaker(k.secrets.Text(scope), from, to, until) }
	return &d
}
