package schema

// At returns the server in whose entry a place of the file is: the last that begins before it, nil if none does.
func (c *Config) At(pos Pos) *Server {
	var owner *Server
	for _, s := range c.Servers {
		if comparePos(s.Pos, pos) <= 0 && (owner == nil || comparePos(owner.Pos, s.Pos) < 0) {
			owner = s
		}
	}
	return owner
}
