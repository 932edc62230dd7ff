package schema

import "time"

// WrapOptions are the flags of the wrap command. nil = not stated.
type WrapOptions struct {
	Timeout *time.Duration // of one attempt
	Retries *int           // after the first attempt, 0 to 10
}

// Wrap makes the config of `mcp-retry wrap -- CMD ARGS`: one server without a file, with 2 retries from 1 s. argv is the program
// and its arguments, taken as they are: nothing is expanded.
func Wrap(name string, argv []string, o WrapOptions) *Config {
	s := newServer(name)
	if len(argv) > 0 {
		s.Command, s.Args = argv[0], argv[1:]
	}
	s.written = written{command: s.Command, args: s.Args}
	rules := ruleList{names: map[string]bool{}}
	rules.flag("--timeout", CallTimeout, o.Timeout != nil, func() any { return *o.Timeout })
	rules.flag("--retries", MaxRetries, o.Retries != nil, func() any { return int64(*o.Retries) })
	rules.add(defaultRule(WrapMaxRetries, WrapBaseDelay))
	for _, r := range Builtin() {
		rules.add(r)
	}
	s.Rules = rules.rules
	return &Config{Servers: []*Server{s}}
}

// flag adds the rule that a flag of the command line stands for.
func (l *ruleList) flag(name string, d Decision, stated bool, value func() any) {
	if stated {
		l.add(Rule{Name: name, Origin: name, Decides: []Setting{{Decision: d, Literal: value()}}})
	}
}
