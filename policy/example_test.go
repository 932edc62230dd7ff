package policy_test

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// A policy alone: what the rules of a config say of a call, without a server and without a proxy.
func Example() {
	config, findings := schema.Load("mcp-retry.yaml", []byte(`
servers:
  shop:
    command: shop-server
    call_timeout: 5
    policy:
      - name: one payment an order
        when: tool.name == "pay"
        effects: unsafe
        idempotency_key: args.order
`), os.LookupEnv)
	if findings.HasErrors() {
		log.Fatal(findings)
	}
	rules, findings := policy.Compile(config.Server("shop"))
	if rules == nil {
		log.Fatal(findings)
	}
	call := policy.Call{
		Tool: policy.Tool{Name: "pay"}, Server: &policy.Peer{Name: "shop"}, Client: &policy.Peer{Name: "me"},
		Args: []byte(`{"order": "A-7", "amount": 20}`), Now: time.Now(),
	}
	plan := rules.For("pay")
	var before policy.Before
	plan.Before(&call, &before)
	fmt.Println(before.Effects, string(before.Key), before.CallTimeout)

	lost := policy.Failure{Kind: "timeout", Delivery: "unknown", Transient: true}
	fmt.Println(plan.AfterAttempt(&call, &lost, 1, 5*time.Second).Retry)
	// Output:
	// unsafe "A-7" 5s
	// false
}
