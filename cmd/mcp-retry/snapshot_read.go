package main

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/bentabol/mcp-retry/schema"
)

// parseSnapshot reads what mcp-retry snapshot writes, or the tools of one server as its tools/list answers: a list of tools, the
// result that holds it, or the whole message.
func parseSnapshot(text []byte) (*snapshot, error) {
	var s snapshot
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '[' {
		err := json.Unmarshal(text, &s.only)
		return &s, err
	}
	var file struct {
		Servers map[string]serverSnapshot `json:"servers"`
		Tools   []json.RawMessage         `json:"tools"`
		Result  struct {
			Tools []json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	switch {
	case file.Servers != nil:
		s.Servers = file.Servers
	case file.Tools != nil:
		s.only = file.Tools
	case file.Result.Tools != nil:
		s.only = file.Result.Tools
	default:
		return nil, errors.New(`it has neither "servers" nor "tools"`)
	}
	return &s, nil
}

// forConfig says whose the tools of a file are that names no server: those of the only server of the config. nil = there are several.
func (s *snapshot) forConfig(cfg *schema.Config) *snapshot {
	if s == nil || s.only == nil || cfg == nil {
		return s
	}
	if len(cfg.Servers) != 1 {
		return nil
	}
	return &snapshot{Servers: map[string]serverSnapshot{cfg.Servers[0].Name: {Tools: s.only}}}
}
