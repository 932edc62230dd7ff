package engine

import (
	"cmp"
	"slices"
	"time"
)

// State is what an engine holds at a moment, for a person who looks for a fault. It has neither arguments nor results, and no
// part of the engine looks at it. Durations are in milliseconds.
type State struct {
	Server   string         `json:"server"`
	Life     StateOfLife    `json:"life"`
	Client   StatePeer      `json:"client"`
	Peer     StatePeer      `json:"peer"` // the server, as it calls itself
	Calls    []StateOfCall  `json:"calls"`
	Requests []StateRequest `json:"requests"` // other requests of the client that wait for an answer
	Open     int            `json:"open"`     // attempts that were given up and may still be answered
	Breakers []StateBreaker `json:"breakers"`
	Buckets  []StateBucket  `json:"buckets"`
	Places   StatePlaces    `json:"places"`
	Store    StateOfStore   `json:"store"`
	Tools    StateOfTools   `json:"tools"`
	Budget   *float64       `json:"budget,omitempty"` // balance of the retry budget
}

// StatePeer is what an end of the session tells of itself.
type StatePeer struct {
	Name     string `json:"name,omitempty"`
	Title    string `json:"title,omitempty"`
	Version  string `json:"version,omitempty"`
	Protocol string `json:"protocol,omitempty"`
}

// StateOfLife is where the server's process stands.
type StateOfLife struct {
	State     string `json:"state"` // unborn, starting, replaying, greeting, up, stopping, down
	Gen       uint64 `json:"gen"`   // how often it was started
	SinceMs   int64  `json:"sinceMs"`
	Failures  int    `json:"failures"`            // lives in a row that were of no use
	BackOffMs int64  `json:"backOffMs,omitempty"` // until it may be started again
	Outdated  bool   `json:"outdated,omitempty"`  // it is started anew once nothing is in flight
	Waiting   int    `json:"waiting"`             // what waits for it to be up
	Detail    string `json:"detail,omitempty"`    // how the last life ended
}

// StateOfCall is a call that waits for an answer.
type StateOfCall struct {
	ID       string `json:"id"` // raw
	Tool     string `json:"tool"`
	AgeMs    int64  `json:"ageMs"`
	State    string `json:"state"` // waiting (for a retry, a token, a place, the server), sending, ended (for a late answer)
	Attempts int    `json:"attempts"`
	Joined   bool   `json:"joined,omitempty"` // it waits for the result of another call
	LeftMs   int64  `json:"leftMs"`           // of its time
}

// StateRequest is a request that is passed on.
type StateRequest struct {
	ID     string `json:"id"` // raw
	Method string `json:"method"`
	Sent   bool   `json:"sent"`
}

// StateBreaker is a circuit breaker.
type StateBreaker struct {
	Scope    string `json:"scope"`
	State    string `json:"state"`
	Failures int    `json:"failures"`         // in a row, while closed
	LeftMs   int64  `json:"leftMs,omitempty"` // of its cooldown, while open
}

// StateBucket is a token bucket.
type StateBucket struct {
	Key     string  `json:"key"`
	Tokens  float64 `json:"tokens"`
	Waiting int     `json:"waiting"`
}

// StatePlaces are the calls that may be at the server at a time.
type StatePlaces struct {
	Most    int `json:"most"` // 0 = any number
	Taken   int `json:"taken"`
	Waiting int `json:"waiting"`
}

// StateOfStore is what is cached and kept.
type StateOfStore struct {
	Entries    int   `json:"entries"`
	Bytes      int64 `json:"bytes"`
	MaxEntries int   `json:"maxEntries"`
	MaxBytes   int64 `json:"maxBytes"`
	InFlight   int   `json:"inFlight"` // operations that a repeat would join
}

// StateOfTools is what is known of the tools.
type StateOfTools struct {
	Known  int  `json:"known"`
	Listed int  `json:"listed"`
	Whole  bool `json:"whole"` // a whole list was seen since the last change
}

// maxShown bounds each list of a state.
const maxShown = 200

// State tells what the engine holds.
func (e *Engine) State(now time.Time) State {
	ms := func(d time.Duration) int64 { return max(d, 0).Milliseconds() }
	l := &e.life
	s := State{
		Server: e.server.Name, Client: StatePeer(e.client), Peer: StatePeer(e.peer),
		Life:   StateOfLife{State: l.state.String(), Gen: l.gen, Failures: l.failures, Outdated: l.outdated, Waiting: len(l.queue), Detail: l.detail},
		Places: StatePlaces{Most: e.places.most, Taken: e.places.taken, Waiting: len(e.places.waiting)},
		Store: StateOfStore{
			Entries: e.store.items.ItemCount(), Bytes: e.store.bytes, MaxEntries: e.store.limit.MaxEntries, MaxBytes: e.store.limit.MaxBytes,
			InFlight: e.inFlight.count(),
		},
		Tools: StateOfTools{Known: len(e.tools.byName), Whole: e.tools.fetched},
		Calls: []StateOfCall{}, Requests: []StateRequest{}, Breakers: []StateBreaker{}, Buckets: []StateBucket{},
	}
	if l.gen > 0 {
		s.Life.SinceMs = ms(now.Sub(l.begun))
	}
	if l.state == down {
		s.Life.BackOffMs = ms(l.notBefore.Sub(now))
	}
	for _, c := range shown(e.openCalls()) {
		s.Calls = append(s.Calls, StateOfCall{ID: string(c.id), Tool: c.own.tool.Name, AgeMs: ms(now.Sub(c.admitted)),
			State: c.op.state.String(), Attempts: c.op.attempts, Joined: c.op != c.own, LeftMs: ms(c.own.deadline.Sub(now))})
	}
	for _, p := range shown(e.openPassing()) {
		s.Requests = append(s.Requests, StateRequest{ID: string(p.id), Method: p.method, Sent: p.sent})
	}
	for _, p := range e.pending {
		if p.attempt != nil && p.attempt.op.running != p.attempt {
			s.Open++
		}
	}
	for _, b := range e.breakers {
		shown := StateBreaker{Scope: b.scope, State: b.state.String(), Failures: b.failures}
		if b.state == open {
			shown.LeftMs = ms(b.until.Sub(now))
		}
		s.Breakers = append(s.Breakers, shown)
	}
	slices.SortFunc(s.Breakers, func(a, b StateBreaker) int { return cmp.Compare(a.Scope, b.Scope) })
	s.Breakers = shown(s.Breakers)
	for key, l := range e.limiters {
		s.Buckets = append(s.Buckets, StateBucket{Key: key, Tokens: l.bucket.TokensAt(now), Waiting: len(l.waiting)})
	}
	slices.SortFunc(s.Buckets, func(a, b StateBucket) int { return cmp.Compare(a.Key, b.Key) })
	s.Buckets = shown(s.Buckets)
	for _, t := range e.tools.byName {
		if t.listed {
			s.Tools.Listed++
		}
	}
	if e.budget.params != nil {
		balance := e.budget.balance
		s.Budget = &balance
	}
	return s
}

func shown[T any](all []T) []T { return all[:min(len(all), maxShown)] }

func (s lifeState) String() string {
	return [...]string{"unborn", "starting", "replaying", "greeting", "up", "stopping", "down"}[s]
}

func (s opState) String() string { return [...]string{"idle", "waiting", "sending", "ended"}[s] }
