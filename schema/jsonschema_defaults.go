package schema

// defaultOf is the default of a key of schema.cue, as a file would state it; false = it has none, or none that is one value.
func defaultOf(owner, name string) (any, bool) {
	v, ok := map[string]any{
		"#Compose.separator":                DefaultSeparator,
		"#Settings.startup_timeout":         DefaultStartupTimeout.Seconds(),
		"#Settings.restart":                 DefaultRestart,
		"#Settings.max_message_bytes":       bytesWords(DefaultMaxMessageBytes),
		"#Settings.errors":                  DefaultErrors,
		"#Settings.trust_annotations":       true,
		"#Settings.mark_results":            false,
		"#Settings.max_concurrency":         0,
		"#Settings.retry_budget":            false,
		"#Common.call_timeout":              DefaultCallTimeout.Seconds(),
		"#Common.max_call_time":             DefaultMaxCallTime.Seconds(),
		"#Common.validate_results":          "off",
		"#Retry.max_retries":                DefaultMaxRetries,
		"#Retry.base_delay":                 DefaultBaseDelay.Seconds(),
		"#Retry.max_delay":                  DefaultMaxDelay.Seconds(),
		"#Retry.jitter":                     DefaultJitter,
		"#Retry.backoff":                    DefaultBackoff,
		"#RetryBudget.ratio":                DefaultBudgetRatio,
		"#RetryBudget.per_second":           DefaultBudgetPerSecond,
		"#RetryBudget.burst":                DefaultBudgetBurst,
		"#Cache.default_ttl":                0,
		"#Cache.max_entries":                DefaultCacheMaxEntries,
		"#Cache.max_bytes":                  bytesWords(DefaultCacheMaxBytes),
		"#CircuitBreaker.failure_threshold": DefaultFailureThreshold,
		"#CircuitBreaker.cooldown_seconds":  DefaultCooldown.Seconds(),
		"#CircuitBreaker.half_open_probes":  DefaultHalfOpenProbes,
		"#RateLimit.max_wait":               0,
		"#Rule.required":                    false,
	}[owner+"."+name]
	return v, ok
}
