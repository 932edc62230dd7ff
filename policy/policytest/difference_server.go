package policytest

import (
	"fmt"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// ServerChange is a server that is treated otherwise, whatever the tool.
type ServerChange struct {
	Server   string          `json:"server"`
	Settings []SettingChange `json:"settings"`
}

// SettingChange is a setting of a server that has another value. Command, args, env and cwd are not compared: they say how it is
// started, not what becomes of its calls.
type SettingChange struct {
	Setting string `json:"setting"` // "cache.max_entries"
	Old     string `json:"old"`
	New     string `json:"new"`
}

func compareSettings(old, now *schema.Server) []SettingChange {
	var changed []SettingChange
	before, after := settingsOf(old), settingsOf(now)
	for i, s := range before {
		if s[1] != after[i][1] {
			changed = append(changed, SettingChange{s[0], s[1], after[i][1]})
		}
	}
	return changed
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
