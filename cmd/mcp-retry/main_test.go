package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// productEnv names the environment variable that makes the test binary the product itself.
const productEnv = "MCP_RETRY_TEST_PRODUCT"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sdkServerCommand {
		os.Exit(sdkServerMain())
	}
	if len(os.Args) > 2 && os.Args[1] == hostileCommand {
		os.Exit(hostileServerMain(os.Args[2]))
	}
	if len(os.Args) > 2 && os.Args[1] == faultServerCommand {
		os.Exit(faultServerMain())
	}
	if os.Getenv(productEnv) != "" || len(os.Args) > 1 && os.Args[1] == flakyCommand {
		main()
	}
	testscript.Main(m, map[string]func(){"mcp-retry": main})
}
