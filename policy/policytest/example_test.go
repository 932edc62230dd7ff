package policytest_test

import (
	"fmt"
	"log"

	"github.com/bentabol/mcp-retry/policy/policytest"
)

// What mcp-retry test does, in a program.
func Example() {
	var loader policytest.Loader
	suite, err := loader.Load("../../examples/payments/mcp-retry.test.yaml")
	if err != nil {
		log.Fatal(err)
	}
	passed, failed := policytest.Run([]*policytest.Suite{suite}, policytest.Options{}).Count()
	fmt.Println(passed > 0, failed)
	// Output:
	// true 0
}
