package schema

import (
	"maps"
	"slices"
)

// Start says how the server is started as the file has it, with variables that are not replaced: it may be shown, but for what the
// file itself holds in plain text. Of a server that no file describes there is none.
func (s *Server) Start() (command string, args []string, env map[string]string, cwd string) {
	return s.written.command, slices.Clone(s.written.args), maps.Clone(s.written.env), s.written.cwd
}
