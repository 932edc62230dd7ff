package policy

import "testing"

func TestLintFindsRetriesThatDoHarm(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"unsafe after a timeout", `
    policy:
      - name: a
        when: error.kind == "timeout"
        retry: true
        retry_unsafe: true`, `8:9+12 warning[retry-unsafe] retries a tool with unsafe effects after a timeout, though the server may have executed the call: it may be executed twice (give the operation an idempotency_key that the server honours (forward_key), or leave it out)`},
		{"unsafe by an expression", `
    policy:
      - retry: error.transient && tool.effects == "none"
        retry_unsafe: tool.name.startsWith("put_")
      - when: tool.effects == "unsafe" && error.kind == "exit"
        retry: true`, `
6:23+28 warning[retry-unsafe-idle] retry_unsafe does nothing here: no rule retries a tool with unsafe effects whose attempt may have been executed (state retry: true beside it, or remove it)
7:9+1 warning[rule-shadowed] rule "policy[1]" never decides anything: rule "policy[0]" (line 5) above it decides all of it for every call (move it above that rule, or remove one of the two)`},
		{"retry_unsafe to no purpose", `
    policy:
      - retry_unsafe: true`, `5:9+12 warning[retry-unsafe-idle] retry_unsafe does nothing here: no rule retries a tool with unsafe effects whose attempt may have been executed (state retry: true beside it, or remove it)`},
		{"silent: not of unsafe tools, or repaired", `
    policy:
      - when: tool.effects != "unsafe" && error.kind == "timeout"
        retry: true
        retry_unsafe: true
      - when: error.kind == "overloaded"
        retry: true`, ""},
		{"after an answer", `
    policy:
      - name: a
        when: error.kind == "tool" && error.text.contains("rate limit")
        retry: true`, `7:9+5 warning[retry-answered] also retries tools with unsafe effects after an answer of the server: what it did before it failed is done again (add tool.effects in ["none", "idempotent"] to its condition)`},
		{"after an answer, of a tool that is known", `
    tools:
      send_mail: {effects: unsafe}
    policy:
      - name: a
        when: tool.name == "send_mail" && error.kind == "tool" && error.text.contains("rate limit")
        retry: true`, `9:9+5 warning[retry-answered] also retries "send_mail" after an answer of the server: what it did before it failed is done again (add tool.effects in ["none", "idempotent"] to its condition)`},
		{"silent: only of tools that may be repeated", `
    tools:
      search: {effects: none}
    policy:
      - when: tool.effects in ["none", "idempotent"] && error.kind == "tool" && error.text.contains("rate limit")
        retry: true
      - when: tool.name == "search" && error.kind == "tool" && error.text.contains("again")
        retry: true
      - name: key
        when: tool.name == "create_charge"
        idempotency_key: '[args.order]'
        forward_key: _meta.key
      - when: tool.name == "create_charge" && error.kind == "tool" && error.text.contains("again")
        retry: true`, ""},
	})
	runLintCases(t, nil, true, []lintCase{
		{"unannotated tools", `    call_timeout: 5`, `2:3+1 note[retry-unannotated] tools without annotations are retried after a timeout, though the server may have executed the call (if a second execution may do harm: {when: '!tool.annotated', retry: false} in policy, or effects: unsafe under tools)`},
		{"unannotated tools that a rule retries", `
    policy:
      - when: tool.effects == "unannotated"
        retry: error.kind == "timeout"`, `6:16+23 note[retry-unannotated] tools without annotations are retried after a timeout, though the server may have executed the call (if a second execution may do harm: {when: '!tool.annotated', retry: false} in policy, or effects: unsafe under tools)`},
		{"silent: they are left alone", `
    policy:
      - when: '!tool.annotated'
        retry: false`, ""},
	})
}

func TestLintFindsRetriesToNoPurpose(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"a code that is refused", `
    policy:
      - when: tool.effects == "none" && error.code in [-32603, -32602]
        retry: true`, `5:64+6 warning[retry-hopeless] -32602 (invalid parameters) is never retried, whatever a rule says: the server would refuse the same call again (remove it)`},
		{"401 by its code", `
    policy:
      - when: tool.effects == "none"
        retry: error.code == 401`, `6:30+3 warning[retry-hopeless] retries 401, which a repeat cannot mend (leave it out: the caller has to see it)`},
		{"401 by its text", `
    policy:
      - when: tool.effects == "none" && error.kind == "tool" && error.text.contains("401")
        retry: true`, `5:85+5 warning[retry-hopeless] retries 401, which a repeat cannot mend (leave it out: the caller has to see it)`},
		{"by a pattern", `
    policy:
      - when: tool.effects == "none" && error.text.matches("(?i)unauthorized|forbidden")
        retry: true`, `5:60+28 warning[retry-hopeless] retries 401, which a repeat cannot mend (leave it out: the caller has to see it)`},
		{"validation by its text", `
    policy:
      - when: tool.effects == "none" && error.text.contains("validation")
        retry: true`, `5:61+12 warning[retry-hopeless] retries invalid arguments, which a repeat cannot mend (leave it out: the caller has to see it)`},
		{"every error of a tool", `
    policy:
      - when: tool.effects == "none" && error.kind == "tool"
        retry: true`, `5:41+20 warning[retry-hopeless] retries every error of a tool, also those that a repeat cannot mend: a refusal of access, invalid arguments, nothing found (name the errors that pass, such as error.transient or a text that says so)`},
		{"everything", `
    policy:
      - when: tool.readOnly && tool.effects == "none"
        retry: true`, `6:9+5 warning[retry-hopeless] retries every error, also those that a repeat cannot mend: a refusal of access, invalid arguments, nothing found (name the errors that pass, such as error.transient or a text that says so)`},
		{"silent: what passes", `
    policy:
      - name: no
        when: error.text.contains("401")
        retry: false
      - when: tool.effects == "none" && error.text.matches("40[13]|rate limit")
        retry: false
      - when: tool.effects == "none" && error.text.matches("(?i)rate limit|too many requests|timed out")
        retry: true
      - when: tool.effects == "none" && (error.code == -32603 || error.transient)
        retry: true`, ""},
		{"no jitter", `
    retry: {jitter: 0}
    call_timeout: 5`, `4:13+6 warning[retry-no-jitter] without jitter all clients of a server that was down come back at the same moment (write jitter: 0.2)`},
		{"silent: no jitter and no retries", `
    retry: {jitter: 0, max_retries: 0}`, ""},
	})
}
