// Package schema turns the bytes of a config file into a [Config] in which everything is a rule.
//
//	bytes ─► tree of nodes with positions ─► CUE: shape and bounds ─► settings ─► rules in normal form
//	         (YAML, JSON with comments, CUE)  all findings at once     defaults     first wins
//
// The file schema.cue is the reference manual of the config: every field, its bounds and its meaning. Defaults are not
// there but in defaults.go, because a CUE default written as a disjunction wrecks the error messages.
//
// What is wrong or unwise is a [Finding]: [Catalog] knows all kinds of them, also those of package policy; [Findings.Mend] corrects
// what can mean but one thing, and [Findings.Silence] leaves out what comments in the file say is right. [JSONSchema] is for editors.
//
// A [Config] holds no CUE and no YAML type. Each setting of the file (retry, cache, circuit_breaker, …) has become a
// [Rule] of its server, in the order of precedence: the server's policy, its tools, its settings, the defaults in the
// same order, and last the built-in policy of builtin.yaml. Package policy compiles and evaluates those rules; nothing
// else decides what happens to a call.
package schema
