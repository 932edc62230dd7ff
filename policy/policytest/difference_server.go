package policytest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// ServerChange is a server that is treated otherwise, whatever the tool.
type ServerChange struct {
	Server   string          `json:"server"`
	Settings []SettingChange `json:"settings"`
}

// SettingChange is a setting that has another value. Values of env are not shown, and secrets in arguments have a placeholder.
type SettingChange struct {
	Setting string `json:"setting"` // "cache.max_entries"
	Old     string `json:"old"`
	New     string `json:"new"`
}

func compareSettings(old, now *schema.Server) []SettingChange {
	changed := compareStart(old, now)
	before, after := settingsOf(old), settingsOf(now)
	for i, s := range before {
		if s[1] != after[i][1] {
			changed = append(changed, SettingChange{s[0], s[1], after[i][1]})
		}
	}
	return changed
}

// compareStart compares how a server is started: another command is another server, for all that we know.
func compareStart(old, now *schema.Server) []SettingChange {
	var changed []SettingChange
	note := func(setting, before, after string) {
		if before != after {
			changed = append(changed, SettingChange{setting, before, after})
		}
	}
	secrets := schema.NewRedactor(old, now)
	command1, args1, env1, cwd1 := old.Start()
	command2, args2, env2, cwd2 := now.Start()
	note("command", secrets.Text(command1), secrets.Text(command2))
	if !slices.Equal(args1, args2) {
		note("args", argsText(secrets, args1), argsText(secrets, args2))
	}
	note("cwd", secrets.Text(cwd1), secrets.Text(cwd2))
	names1, names2 := slices.Sorted(maps.Keys(env1)), slices.Sorted(maps.Keys(env2))
	note("env", strings.Join(names1, ", "), strings.Join(names2, ", "))
	for _, name := range names1 {
		if value, ok := env2[name]; ok && value != env1[name] {
			note("env."+name, "a value", "another value")
		}
	}
	return changed
}

// argsText is arguments as a list. A secret is known by its argument, or by the one before it.
func argsText(secrets *schema.Redactor, args []string) string {
	text, err := json.Marshal(args)
	if err != nil || args == nil {
		return "[]"
	}
	return string(secrets.Redact(text))
}

// compareNames compares what tools are called by the client.
func compareNames(old, now *schema.Config) []SettingChange {
	before, after := cmp.Or(old.Separator, schema.DefaultSeparator), cmp.Or(now.Separator, schema.DefaultSeparator)
	several1, several2 := len(old.Servers) > 1, len(now.Servers) > 1
	switch {
	case several1 && several2 && before != after:
		return []SettingChange{{"separator", before, after}}
	case several1 && !several2:
		return []SettingChange{{"tool names", "SERVER" + before + "TOOL", "TOOL"}}
	case !several1 && several2:
		return []SettingChange{{"tool names", "TOOL", "SERVER" + after + "TOOL"}}
	}
	return nil
}

// settingsOf are the settings of a server and their values, always the same ones in the same order.
func settingsOf(s *schema.Server) [][2]string {
	budget := "false"
	if b := s.Budget; b != nil {
		budget = fmt.Sprintf("%g of first attempts, %g per second, at most %g", b.Ratio, b.PerSecond, b.Burst)
	}
	allow := "every tool"
	if s.ToolFilter.Allow != nil {
		allow = "[" + strings.Join(s.ToolFilter.Allow, ", ") + "]"
	}
	concurrency := "any number"
	if s.MaxConcurrency > 0 {
		concurrency = fmt.Sprint(s.MaxConcurrency)
	}
	return [][2]string{
		{"startup_timeout", short(s.StartupTimeout)},
		{"restart", s.Restart},
		{"max_message_bytes", fmt.Sprint(s.MaxMessageBytes)},
		{"errors", s.Errors},
		{"trust_annotations", fmt.Sprint(s.TrustAnnotations)},
		{"mark_results", fmt.Sprint(s.MarkResults)},
		{"max_concurrency", concurrency},
		{"retry_budget", budget},
		{"cache.max_entries", fmt.Sprint(s.CacheLimit.MaxEntries)},
		{"cache.max_bytes", fmt.Sprint(s.CacheLimit.MaxBytes)},
		{"tool_filter.allow", allow},
		{"tool_filter.deny", "[" + strings.Join(s.ToolFilter.Deny, ", ") + "]"},
	}
}
