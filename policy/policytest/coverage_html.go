package policytest

import (
	"html/template"
	"io"
	"slices"
	"strings"
)

// WriteHTML writes the configs with what was reached in green and what was not in red, as one page that needs nothing else.
// What a line misses shows when the pointer rests on it, and below it.
func (c *Coverage) WriteHTML(w io.Writer) error {
	type view struct {
		File   string
		Counts []string
		Lines  []htmlLine
	}
	page := struct {
		Percent float64
		Configs []view
	}{Percent: c.Percent()}
	for _, config := range c.Configs {
		page.Configs = append(page.Configs, view{config.File, config.counts(), config.lines()})
	}
	return coveragePage.Execute(w, page)
}

type htmlLine struct {
	Number int
	Pieces []htmlPiece
	Missed []string
}

// htmlPiece is a piece of a line; Class says how it was reached: "" = there is nothing to reach.
type htmlPiece struct {
	Text, Class, Title string
}

// lines are those of the config, cut into pieces.
func (c *ConfigCoverage) lines() []htmlLine {
	byLine := map[int][]*Point{}
	for _, p := range c.Points {
		byLine[p.Pos.Line] = append(byLine[p.Pos.Line], p)
	}
	var lines []htmlLine
	for i, text := range strings.Split(strings.TrimRight(string(c.Text), "\n"), "\n") {
		line := htmlLine{Number: i + 1}
		line.cut([]rune(strings.TrimRight(text, "\r")), byLine[i+1])
		lines = append(lines, line)
	}
	return lines
}

// operators are the characters of CEL's operators, of which a place may be the first.
const operators = "&|=!<>?"

// cut marks in a line what its points begin at: the name or value there.
func (l *htmlLine) cut(text []rune, points []*Point) {
	byCol := map[int][]*Point{}
	var cols []int
	for _, p := range points {
		if byCol[p.Pos.Col] == nil {
			cols = append(cols, p.Pos.Col)
		}
		byCol[p.Pos.Col] = append(byCol[p.Pos.Col], p)
	}
	slices.Sort(cols)
	at := 0
	for _, col := range cols {
		start := min(col-1, max(0, len(text)-1))
		if start < at {
			start = at
		}
		end := start
		switch {
		case start == len(text): // an empty line
		case strings.ContainsRune(operators, text[start]):
			for end < len(text) && strings.ContainsRune(operators, text[end]) {
				end++
			}
		default:
			for end < len(text) && !strings.ContainsRune(" ,:()[]&|!\t", text[end]) {
				end++
			}
		}
		end = max(end, min(start+1, len(text)))
		l.add(text[at:start], nil)
		l.add(text[start:end], byCol[col])
		at = end
	}
	l.add(text[at:], nil)
}

func (l *htmlLine) add(text []rune, points []*Point) {
	if len(text) == 0 && len(points) == 0 {
		return
	}
	piece := htmlPiece{Text: string(text)}
	reached := 0
	var missed []string
	for _, p := range points {
		if p.Hits > 0 {
			reached++
		} else {
			missed = append(missed, p.Missed())
		}
	}
	switch {
	case len(points) == 0:
	case reached == len(points):
		piece.Class = "all"
	case reached == 0:
		piece.Class = "none"
	default:
		piece.Class = "some"
	}
	piece.Title = strings.Join(missed, "\n")
	l.Missed = append(l.Missed, missed...)
	l.Pieces = append(l.Pieces, piece)
}

var coveragePage = template.Must(template.New("coverage").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>policy coverage: {{.Percent}} %</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #222; background: #fff }
pre { font: 13px/1.5 ui-monospace, monospace; overflow-x: auto; padding: .5rem 0; border: 1px solid #ccc; border-radius: 4px }
pre span.number { display: inline-block; width: 3.5em; padding-right: 1em; text-align: right; color: #888; user-select: none }
.all { background: #c8f0ce } .some { background: #ffe9a8 } .none { background: #ffc9c4 }
.missed { color: #a3200f; padding-left: 4.5em }
@media (prefers-color-scheme: dark) {
 body { color: #ddd; background: #16181c } pre { border-color: #444 }
 .all { background: #1d4d29 } .some { background: #5c4a10 } .none { background: #6b211b } .missed { color: #ff9d90 }
}
</style>
</head>
<body>
<h1>policy coverage: {{.Percent}} %</h1>
<p><span class="all">reached</span> <span class="some">reached in part</span> <span class="none">not reached</span></p>
{{range .Configs}}<h2>{{.File}}</h2>
<p>{{range $i, $count := .Counts}}{{if $i}}, {{end}}{{$count}}{{end}}</p>
<pre>
{{range .Lines}}<span class="number">{{.Number}}</span>{{range .Pieces}}{{if .Class}}<span class="{{.Class}}"{{if .Title}} title="{{.Title}}"{{end}}>{{.Text}}</span>{{else}}{{.Text}}{{end}}{{end}}
{{range .Missed}}<span class="missed">{{.}}</span>
{{end}}{{end}}</pre>
{{end}}</body>
</html>
`))
