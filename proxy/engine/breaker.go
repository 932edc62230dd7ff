package engine

import (
	"time"

	"github.com/bentabol/mcp-retry/policy"
)

// breakerState is the state of a circuit breaker.
type breakerState uint8

const (
	closed   breakerState = iota // attempts pass; consecutive failures are counted
	open                         // attempts are refused until the cooldown is over
	halfOpen                     // a few probes pass, the others are refused
)

func (s breakerState) String() string { return [...]string{"closed", "open", "half_open"}[s] }

// verdict is what an attempt means to its breaker.
type verdict uint8

const (
	ignored   verdict = iota // the client's doing or our own: counts as neither
	succeeded                // the server answered
	failed                   // the server failed
)

// permit is the leave of a breaker to make one attempt. It belongs to the period between two changes of state in which it
// was given: what an attempt of an earlier period comes to says nothing about the present one.
type permit struct {
	breaker *breaker
	period  uint64
	probe   bool
}

// breaker is a consecutive-failure circuit breaker. Every permit is given back exactly once, by done: the engine's
// timers see to it that each attempt ends, so a probe cannot hang for ever.
type breaker struct {
	scope    string
	params   policy.Breaker
	state    breakerState
	period   uint64
	failures int       // in a row, while closed
	until    time.Time // while open
	out      int       // probes on their way, while half-open
	passed   int       // probes that succeeded, while half-open
	used     uint64    // when it was last asked, for dropping the one asked least recently
}

// allow asks to make an attempt. When it is refused, wait says how long until it is worth asking again.
func (b *breaker) allow(now time.Time) (p permit, ok bool, wait time.Duration) {
	if b.state == open {
		if left := b.until.Sub(now); left > 0 {
			return permit{}, false, left
		}
		b.enter(halfOpen)
	}
	if b.state == halfOpen {
		if b.out+b.passed >= max(b.params.Probes, 1) {
			return permit{}, false, time.Second // a probe is out; nobody knows for how long
		}
		b.out++
		return permit{b, b.period, true}, true, 0
	}
	return permit{b, b.period, false}, true, 0
}

// done gives a permit back with what the attempt came to.
func (b *breaker) done(p permit, v verdict, now time.Time) {
	if p.period != b.period {
		return
	}
	if p.probe {
		b.out--
	}
	switch {
	case v == ignored:
	case b.state == halfOpen && v == failed:
		b.trip(now)
	case b.state == halfOpen:
		if b.passed++; b.passed >= max(b.params.Probes, 1) {
			b.enter(closed)
		}
	case v == succeeded:
		b.failures = 0
	default:
		if b.failures++; b.failures >= max(b.params.Threshold, 1) {
			b.trip(now)
		}
	}
}

func (b *breaker) trip(now time.Time) {
	b.enter(open)
	b.until = now.Add(b.params.Cooldown)
}

func (b *breaker) enter(s breakerState) {
	b.state = s
	b.period++
	b.failures, b.out, b.passed = 0, 0, 0
}

// maxScopes bounds the breakers of a server: a scope may be made from arguments.
const maxScopes = 1024

// breakerFor returns the breaker of a scope, with the parameters of the call that asks.
func (e *Engine) breakerFor(scope string, params policy.Breaker) *breaker {
	e.asked++
	b := e.breakers[scope]
	if b == nil {
		if len(e.breakers) >= maxScopes {
			e.dropIdlestBreaker()
		}
		b = &breaker{scope: scope}
		e.breakers[scope] = b
		e.meterBreaker(b, "", b.state.String())
	}
	b.params, b.used = params, e.asked
	return b
}

// dropIdlestBreaker forgets the closed breaker that was asked least recently, or failing that the idlest of all.
func (e *Engine) dropIdlestBreaker() {
	var idlest *breaker
	for _, b := range e.breakers {
		better := idlest == nil ||
			(b.state == closed) != (idlest.state == closed) && b.state == closed ||
			(b.state == closed) == (idlest.state == closed) && b.used < idlest.used
		if better {
			idlest = b
		}
	}
	delete(e.breakers, idlest.scope)
	e.meterBreaker(idlest, idlest.state.String(), "")
}

// tell gives an attempt's permit back and logs a change of the breaker's state.
func (e *Engine) tell(p permit, v verdict, tool string) {
	if p.breaker == nil {
		return
	}
	before := p.breaker.state
	p.breaker.done(p, v, e.now)
	e.logBreaker(p.breaker, before, tool)
}

// ask asks a breaker for leave to make an attempt and logs a change of its state.
func (e *Engine) ask(b *breaker, tool string) (permit, bool, time.Duration) {
	before := b.state
	p, ok, wait := b.allow(e.now)
	e.logBreaker(b, before, tool)
	return p, ok, wait
}

func (e *Engine) logBreaker(b *breaker, before breakerState, tool string) {
	if b.state == before {
		return
	}
	e.meterBreaker(b, before.String(), b.state.String())
	level := LevelInfo
	if b.state == open {
		level = LevelWarn
	}
	e.log(Record{Level: level, Event: "circuit_breaker_state_change", Tool: tool, Scope: b.scope, From: before.String(), To: b.state.String()})
}
