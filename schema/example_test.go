package schema_test

import (
	"fmt"
	"log"
	"os"

	"github.com/bentabol/mcp-retry/schema"
)

// A config file, with all that is wrong with it at once, and what it states of a server.
func ExampleLoadFile() {
	config, findings, err := schema.LoadFile("../examples/quickstart/mcp-retry.yaml", os.LookupEnv)
	if err != nil {
		log.Fatal(err) // there is no such file, say
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	for _, server := range config.Servers {
		fmt.Println(server.Name, server.Command, server.Args[1])
	}
	// Output:
	// filesystem npx @modelcontextprotocol/server-filesystem
	// everything npx @modelcontextprotocol/server-everything
}
