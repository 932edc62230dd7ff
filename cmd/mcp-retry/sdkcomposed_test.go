package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestSDKClientOfSeveralServers: the official Go SDK's client sees two servers of that SDK as one, in each era.
func TestSDKClientOfSeveralServers(t *testing.T) {
	for _, version := range []string{"", newest, "2025-06-18", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			config := filepath.Join(t.TempDir(), "mcp-retry.yaml")
			self := fieldProgram(t)
			text := "servers:\n"
			for _, name := range []string{"alpha", "beta"} {
				text += fmt.Sprintf("  %s: {command: %q, args: [%s], env: {MCP_TAP: %q}}\n", name, self, sdkServerCommand, newPlace(t).tap)
			}
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "run", "--log-level", "error", "--config", config)
			cmd.Env = fieldEnvironment(nil)
			cmd.Stderr = t.Output()
			v := travel(t, &mcp.CommandTransport{Command: cmd}, version)

			var tools []string
			for tool, err := range v.session.Tools(v.ctx, nil) {
				if err != nil {
					t.Fatal(err)
				}
				tools = append(tools, tool.Name)
			}
			for _, want := range []string{"alpha__echo", "alpha__work", "beta__echo", "beta__work"} {
				if !slices.Contains(tools, want) {
					t.Errorf("no %s among %s", want, tools)
				}
			}
			for _, server := range []string{"alpha", "beta"} {
				v.call(server+"__echo", `{"text":"to `+server+`"}`)
				if last := v.notes[len(v.notes)-1]; !strings.Contains(last, `echo: to `+server) {
					t.Errorf("%s", last)
				}
			}
			v.work("beta__work")
			if prompt, err := v.session.GetPrompt(v.ctx, &mcp.GetPromptParams{Name: "beta__greet", Arguments: map[string]string{"who": "Ada"}}); err != nil ||
				prompt.Messages[0].Content.(*mcp.TextContent).Text != "greet Ada" {
				t.Errorf("the prompt: %v, %v", prompt, err)
			}
			if read, err := v.session.ReadResource(v.ctx, &mcp.ReadResourceParams{URI: "test://resource"}); err != nil || read.Contents[0].Text != "content" {
				t.Errorf("the resource: %v, %v", read, err)
			}
			if err := v.session.Subscribe(v.ctx, &mcp.SubscribeParams{URI: "test://resource"}); err != nil {
				t.Error(err)
			}
			for updated := ""; updated == ""; { // in the newest revision Subscribe returns before the server knows
				v.call("alpha__change", `{"text":"resource"}`)
				select {
				case updated = <-v.updated:
				case <-v.ctx.Done():
					t.Fatal("the client heard of no update")
				default:
				}
			}

			v.cancel("alpha__hang")
			v.call("beta__echo", `{"text":"after"}`) // the word of the cancellation goes out before
			if err := v.session.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		})
	}
}
