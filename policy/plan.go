package policy

import (
	"sync"
	"sync/atomic"
)

// Plan is what a policy says about one tool. The rules that can decide something for it are found once, at its first call, and
// again where its hints have changed: a decision costs what those rules cost, however many there are for other tools.
type Plan struct {
	policy *Policy
	tool   string
	named  atomic.Pointer[table] // of a tool of which only the name is known
	hinted atomic.Pointer[table] // of the tool with the hints that it had last
	others atomic.Pointer[table] // of a tool whose effects are others than the rules say, by its name
}

// For returns what the policy says about the tool of that name. Keep the plan: what it has found out stays with it. It can be
// used by many goroutines.
func (p *Policy) For(tool string) *Plan { return &Plan{policy: p, tool: tool} }

// byName is what can be said of the tool by its name.
func (pl *Plan) byName() *table {
	t := pl.named.Load()
	if t == nil {
		t = pl.policy.table(&learned{tool: Tool{Name: pl.tool}})
		pl.named.Store(t)
		pl.policy.tables.add(&pl.named, t)
	}
	return t
}

// byOtherEffects is what can be said of the tool by its name where its effects are read more carefully than the rules have decided.
func (pl *Plan) byOtherEffects() *table {
	t := pl.others.Load()
	if t == nil {
		t = pl.policy.table(&learned{tool: Tool{Name: pl.tool}, otherEffects: true})
		pl.others.Store(t)
		pl.policy.tables.add(&pl.others, t)
	}
	return t
}

// byHints is what can be said of the tool by its name and its hints.
func (pl *Plan) byHints(tool *Tool) *table {
	t := pl.hinted.Load()
	if t == nil || !t.fits(tool) {
		known := Tool{
			Name: pl.tool, Annotated: tool.Annotated, ReadOnly: tool.ReadOnly, Destructive: tool.Destructive,
			Idempotent: tool.Idempotent, OpenWorld: tool.OpenWorld,
		}
		t = pl.policy.table(&learned{tool: known, hinted: true})
		pl.hinted.Store(t)
		pl.policy.tables.add(&pl.hinted, t)
	}
	return t
}

// later is what can be said of the tool in a phase after the first. What effects it has may be read more carefully there.
func (pl *Plan) later(c *Call) *table {
	if t := c.memo.table; t != nil && c.memo.plan == pl && t.fits(&c.Tool) && t.sees(c.Tool.Effects) {
		return t
	}
	t := pl.byHints(&c.Tool)
	if !t.sees(c.Tool.Effects) {
		t = pl.byName()
	}
	if !t.sees(c.Tool.Effects) {
		t = pl.byOtherEffects()
	}
	return t
}

// maxKept bounds the tables that are kept, in candidates: whoever makes up names of tools, each under a thousand rules that may
// concern it, gets no more memory than 8 MiB.
const maxKept = 1 << 18

// tables bounds the memory that the plans of a policy take: the oldest table goes first. Its plan makes it anew when it is asked.
type tables struct {
	mu   sync.Mutex
	kept []keptTable
	size int
}

type keptTable struct {
	in    *atomic.Pointer[table]
	table *table
}

func (k *tables) add(in *atomic.Pointer[table], t *table) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, keptTable{in, t})
	k.size += t.size
	for k.size > maxKept && len(k.kept) > 1 {
		oldest := k.kept[0]
		oldest.in.CompareAndSwap(oldest.table, nil)
		k.size -= oldest.table.size
		k.kept[0] = keptTable{}
		k.kept = k.kept[1:]
	}
}
