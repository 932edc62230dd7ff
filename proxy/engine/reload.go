package engine

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/bentabol/mcp-retry/schema"
)

// reload puts another config in place of the present one, for the same server. A call ends under the policy that admitted it;
// breakers, buckets, and what is cached, kept and in flight stay as they are. A server that is to be started otherwise than it
// was is started anew once nothing is in flight.
func (e *Engine) reload(ev *Event) {
	before := e.server
	e.server, e.policy = ev.Server, ev.Policy
	for name, t := range e.tools.byName {
		if !t.known && (!e.server.TrustAnnotations || before.TrustAnnotations) { // calls in flight still learn what it does
			t.plan = e.policy.For(name)
			t.Effects = t.AnnotatedEffects(e.server.TrustAnnotations)
			continue
		}
		fresh := *t // calls in flight keep the one that they know
		fresh.plan = e.policy.For(name)
		fresh.Effects = fresh.AnnotatedEffects(e.server.TrustAnnotations)
		e.tools.byName[name] = &fresh
	}
	if !reflect.DeepEqual(before.Budget, e.server.Budget) {
		e.budget = newBudget(e.server.Budget)
	}
	e.places.most = e.server.MaxConcurrency
	e.admitAllIfUnlimited()
	e.store.limit = e.server.CacheLimit
	validated := e.validates
	e.validates = validatesAny(e.server.Rules)
	filtered := !reflect.DeepEqual(visibility(before), visibility(e.server))
	if filtered || e.validates && !validated {
		e.tools.fetched = false // what was hidden, or of no interest, was not learned
	}
	if filtered && e.session.listChanged && e.session.confirmed {
		mark := len(e.pieces)
		e.pieces = append(e.pieces, toolsChanged)
		e.emit(ToClient, mark, 0, 0)
	}
	detail := "the new config is in force"
	if !startsAlike(before, e.server) {
		detail += "; the server is started anew once nothing is in flight"
		e.life.outdated = true
		e.life.failures, e.life.notBefore = 0, time.Time{}
	}
	e.log(Record{Level: LevelInfo, Event: "config_reload", Detail: detail})
}

// visibility is what decides which tools exist for the client.
func visibility(s *schema.Server) [2][]string {
	return [2][]string{s.ToolFilter.Allow, s.ToolFilter.Deny}
}

// startsAlike reports whether two configs start the same process.
func startsAlike(a, b *schema.Server) bool {
	return a.Command == b.Command && slices.Equal(a.Args, b.Args) && maps.Equal(a.Env, b.Env) && a.Cwd == b.Cwd
}

// admitAllIfUnlimited lets those go on who wait for a place, if there is no limit any more.
func (e *Engine) admitAllIfUnlimited() {
	p := &e.places
	for p.most == 0 && len(p.waiting) > 0 {
		op := p.waiting[0]
		p.waiting = leaveLine(p.waiting, op)
		e.timers.stop(&op.timer)
		e.launch(op)
	}
}

// fit gives a bucket the rate and the size that policy wants now.
func (l *limiter) fit(now time.Time, every rate.Limit, burst int) {
	if l.bucket.Limit() != every {
		l.bucket.SetLimitAt(now, every)
	}
	if l.bucket.Burst() != burst {
		l.bucket.SetBurstAt(now, burst)
	}
}

// renewIfIdle ends a life that was started under another config, once nothing is in flight; the next begins as soon as its end is
// reported. One that has ended by itself is renewed by the next need.
func (e *Engine) renewIfIdle() {
	l := &e.life
	if !l.outdated || e.leaving || l.state != up || !e.idle() {
		return
	}
	e.out = append(e.out, Action{Kind: StopServer, Gen: l.gen})
	l.renewing = true
	e.dead(stopping, "its config has changed", false, nil)
	l.failures, l.notBefore = 0, time.Time{}
}

// idle reports whether nothing is in flight that the end of the server would spoil. A subscription is never over by itself: the
// client is told of its end, and opens it again.
func (e *Engine) idle() bool {
	if len(e.calls) > 0 || len(e.asking) > 0 {
		return false
	}
	for _, p := range e.pending {
		if p.pass == nil || p.pass.method != "subscriptions/listen" {
			return false
		}
	}
	return true
}
