//go:build unix

package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/bentabol/mcp-retry/proxy"
	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// A program that is its server's client through a proxy. The server fails at first, and the client never sees it. (For a
// real server, Command and Args in the config are all that there is to it; here the test binary plays one.)
func Example() {
	server := flaky.Script{Tools: []flaky.Tool{{
		Name: "look",
		Plan: flaky.Plan{Outcomes: []flaky.Outcome{{Error: &flaky.Error{Code: -32000, Message: "busy"}}}},
	}}}
	os.Setenv("SCRIPT", server.String())
	os.Setenv("SERVER", os.Args[0])
	defer os.Unsetenv("SCRIPT")

	options, err := proxy.Parse("inline.yaml", []byte(`
servers:
  shop:
    command: ${SERVER}
    env: {`+flaky.EnvVar+`: "${SCRIPT}"}
    retry: {max_retries: 3, base_delay: 1ms}
`), "shop")
	if err != nil {
		log.Fatal(err)
	}
	p, err := proxy.New(options)
	if err != nil {
		log.Fatal(err)
	}
	fromClient, requests := io.Pipe()
	answers, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- p.Serve(context.Background(), fromClient, toClient) }()

	lines := bufio.NewScanner(answers)
	ask := func(frame string) string {
		fmt.Fprintln(requests, frame)
		lines.Scan()
		return lines.Text()
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"me","version":"1"}}}`)
	fmt.Fprintln(requests, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Println(ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"look"}}`))
	requests.Close()
	fmt.Println(<-served)
	// Output:
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"tool\":\"look\",\"execution\":1,\"arguments\":null}"}]}}
	// <nil>
}

// A complete program: what mcp-retry run does, with the config in a file.
func ExampleOpen() {
	options, err := proxy.Open("mcp-retry.yaml", "github")
	if err != nil {
		log.Fatal(err) // all that is wrong with the file, line by line
	}
	options.Stderr = os.Stderr
	p, err := proxy.New(options)
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
