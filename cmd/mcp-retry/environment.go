package main

import (
	"os"
	"regexp"
	"strings"
)

// leftOver is a placeholder such as ${input:token} or ${GITHUB_TOKEN} that some clients fill in and others hand on as it is.
var leftOver = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_.:/ -]*\}$`)

// lookupEnv is the environment for a config. A variable that holds a placeholder counts as not set: a server must not be
// given it for a token.
func lookupEnv(name string) (string, bool) {
	value, ok := os.LookupEnv(name)
	if ok && leftOver.MatchString(value) {
		return "", false
	}
	return value, ok
}

// warnOfPlaceholders names the variables in our environment, which a server inherits, that nobody filled in.
func (u *ui) warnOfPlaceholders() {
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); name != "" && leftOver.MatchString(value) {
			u.warnf("the variable %s holds %q: the client did not fill it in", name, value)
		}
	}
}
