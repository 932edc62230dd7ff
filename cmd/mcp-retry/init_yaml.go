package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// yaml is the config that wraps the servers, with comments for the person who is to go on with it.
func (g *gathering) yaml() []byte {
	var out bytes.Buffer
	out.WriteString("# What stands between your MCP clients and these servers. Made by mcp-retry init from\n")
	for _, file := range g.files {
		fmt.Fprintf(&out, "#   %s\n", oneLine(file))
	}
	out.WriteString(yamlHead)
	for i, s := range g.servers {
		if i > 0 {
			out.WriteString("\n")
		}
		s.yaml(&out)
	}
	return out.Bytes()
}

const yamlHead = `# mcp-retry validate finds mistakes in here, mcp-retry explain shows the rules that come of it, mcp-retry check
# starts the servers, and mcp-retry install points the clients at them.

# For every server that does not say otherwise. These are the defaults: take the # away, and change what you like.
# A duration is a number of seconds, or text such as "500ms" or "1m30s".
#
# defaults:
#   call_timeout: 30          # one attempt without an answer or progress
#   total_timeout: 55         # one call with all its attempts; clients give up at 60. Without it, what is stated of the attempts adds up
#   retry:
#     max_retries: 3          # after the first attempt; what a tool declares unsafe is not repeated
#     base_delay: 0.5
#   circuit_breaker:
#     failure_threshold: 5    # failures in a row, after which calls fail at once
#     cooldown_seconds: 30
#   cache:
#     default_ttl: 0          # how long results of tools that only read are kept

servers:
`

// yaml writes the entry of a server.
func (s gathered) yaml(out *bytes.Buffer) {
	for _, from := range s.from {
		fmt.Fprintf(out, "  # from %s\n", oneLine(from))
	}
	fmt.Fprintf(out, "  %s:\n", yamlText(s.name))
	fmt.Fprintf(out, "    command: %s\n", yamlText(s.start.command))
	if len(s.start.args) > 0 {
		words := make([]string, len(s.start.args))
		for i, word := range s.start.args {
			words[i] = yamlQuoted(word)
		}
		fmt.Fprintf(out, "    args: [%s]\n", strings.Join(words, ", "))
	}
	if len(s.start.env) > 0 {
		out.WriteString("    env:\n")
		written := map[string]bool{}
		for _, v := range s.start.env {
			if !written[v.name] {
				fmt.Fprintf(out, "      %s: %s\n", yamlText(v.name), yamlQuoted(lastValue(s.start.env, v.name)))
			}
			written[v.name] = true
		}
	}
	if s.start.cwd != "" {
		fmt.Fprintf(out, "    cwd: %s\n", yamlText(s.start.cwd))
	}
}

// lastValue is the value of a variable. Of several the last counts, as it does for the clients.
func lastValue(env []envVar, name string) (value string) {
	for _, v := range env {
		if v.name == name {
			value = v.value
		}
	}
	return value
}

// yamlPlain are texts that YAML reads as themselves without quotes.
var yamlPlain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./+-]*$`)

// yamlText is a text as a YAML scalar, without quotes if it needs none.
func yamlText(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return yamlQuoted(s)
	}
	if yamlPlain.MatchString(s) {
		return s
	}
	return yamlQuoted(s)
}

// yamlQuoted is a text as a YAML scalar in double quotes, which read as those of JSON do.
func yamlQuoted(s string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(s) != nil {
		return `""`
	}
	return strings.ReplaceAll(strings.TrimSpace(out.String()), "\u007f", `\u007f`)
}
