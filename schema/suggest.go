package schema

import "strings"

// commonNames are what other tools call our keys.
var commonNames = map[string]string{
	"mcpServers": "servers", "mcp_servers": "servers", "mcp": "servers",
	"environment": "env", "arguments": "args", "argv": "args", "cmd": "command", "working_directory": "cwd", "workdir": "cwd", "dir": "cwd",
	"rules": "policy", "policies": "policy", "if": "when", "condition": "when", "match": "when", "timeout": "call_timeout",
	"retries": "retry", "max": "max_retries", "max_attempts": "max_retries", "max_retry": "max_retries", "maxRetry": "max_retries", "attempts": "max_retries",
	"initial_delay": "base_delay", "delay": "base_delay", "min_delay": "base_delay", "backoff_base": "base_delay",
	"threshold": "failure_threshold", "failures": "failure_threshold", "reset_after": "cooldown_seconds", "cooldown": "cooldown_seconds",
	"reset_timeout": "cooldown_seconds", "open_for": "cooldown_seconds", "probes": "half_open_probes",
	"breaker": "circuit_breaker", "ttl": "cache_ttl", "default": "default_ttl", "cache": "cache_ttl",
	"include": "allow", "exclude": "deny", "requests": "calls", "limit": "calls", "interval": "per", "window": "per",
	"max_size": "max_bytes", "idempotency": "idempotency_key", "key": "idempotency_key",
}

// nearest returns the candidate that a word is most likely a slip of, or "".
func nearest(word string, candidates []string) string {
	w := joined(word)
	best, bestAt := "", 1+len(w)/3
	if len(w) < 3 {
		bestAt = 1
	}
	for _, c := range candidates {
		if d := distance(w, joined(c)); d < bestAt || d == 0 {
			best, bestAt = c, d
		}
	}
	return best
}

// joined is a name without what joins its words: maxRetries, max-retries and max_retries are one.
func joined(name string) string { return strings.ToLower(joints.Replace(name)) }

var joints = strings.NewReplacer("_", "", "-", "", " ", "", ".", "")

// distance is the number of characters to insert, delete, replace or swap with their neighbour (Damerau and Levenshtein, each
// place touched once).
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
