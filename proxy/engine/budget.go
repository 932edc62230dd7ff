package engine

import (
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// budget bounds the retries of a server by what its first attempts earn, so that retries cannot multiply the load of a
// server that fails. (Finagle's RetryBudget; a retry after an unknown delivery costs double, as in the AWS SDK.)
type budget struct {
	params  *schema.Budget // nil = no budget: every retry is granted
	balance float64
	at      time.Time // when the balance was last brought up to date
}

func newBudget(params *schema.Budget) budget {
	b := budget{params: params}
	if params != nil {
		b.balance = params.Burst
	}
	return b
}

func (b *budget) accrue(now time.Time) {
	if !b.at.IsZero() {
		b.balance = min(b.params.Burst, b.balance+now.Sub(b.at).Seconds()*b.params.PerSecond)
	}
	b.at = now
}

// earn is called when a first attempt succeeds.
func (b *budget) earn(now time.Time) {
	if b.params == nil {
		return
	}
	b.accrue(now)
	b.balance = min(b.params.Burst, b.balance+b.params.Ratio)
}

// take pays for a retry, before the wait; a refused retry is dropped, never queued.
func (b *budget) take(now time.Time, cost float64) bool {
	if b.params == nil {
		return true
	}
	b.accrue(now)
	if b.balance < cost {
		return false
	}
	b.balance -= cost
	return true
}
