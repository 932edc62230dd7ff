package policy

// Match reports whether name matches the glob pattern: * stands for any run of characters, the empty one included, and ? for
// exactly one character. Every other character stands for itself, and the pattern must cover the whole name.
func Match(pattern, name string) bool {
	// The last * seen is the only place to come back to, so the cost is at most len(pattern)·len(name).
	p, n := 0, 0
	star, mark := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			n = nextRune(name, n)
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0:
			mark = nextRune(name, mark)
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// nextRune returns the index behind the character that starts at i.
func nextRune(s string, i int) int {
	i++
	for i < len(s) && s[i]&0xC0 == 0x80 {
		i++
	}
	return i
}
