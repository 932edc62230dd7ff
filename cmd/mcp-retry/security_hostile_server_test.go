package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// hostileCommand is the argument that makes the test binary a server that does its worst. A second argument says how it lists its
// tools; what else it does, the client asks for by the name of a tool.
const hostileCommand = "__hostile-server"

// Ways to list tools.
const (
	listMillion  = "million"  // a million of them on one page, fewer under the race detector
	listEndless  = "endless"  // page after page, for ever
	listHuge     = "huge"     // page after page of tools whose names, titles, descriptions and schemas have a megabyte each
	listSpiteful = "spiteful" // names and texts that are meant for a terminal, a table or a page
	listRefuses  = "refuses"  // none: it answers initialize by an error with such a text
	listDies     = "dies"     // none: it says such a text on stderr, and exits
)

// hugePages is how many pages [listHuge] has, of 48 MiB each. Under the race detector, which is slow, it is as many less as the
// bound of the memory is greater; so it is with floods.
const hugePages = 20 / fieldLarger

// spite is what a hostile text holds: it ends the line, clears the screen, writes the clipboard, turns the direction of writing,
// forges a record, a command of a workflow and a page's script, and hides behind a NUL.
const spite = "a\nb\r\x1b[2J\x1b]52;c;cHduZWQ=\a\x1b]0;owned\x1b\\\u202eevil\u2066\u200b\x00\u0085\u2028\x9b31m" +
	"\n::error file=x::owned\n{\"level\":\"error\",\"msg\":\"forged\"}\n<script>alert(1)</script>]]>&\"'"

func hostileServerMain(mode string) int {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	if mode == listDies {
		fmt.Fprintln(os.Stderr, spite)
		return 1
	}
	for pages := 0; ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		answer := func(result string) { fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result) }
		refuse := func() {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`+"\n", m.ID, quotedJSON(spite))
		}
		switch m.Method {
		case "initialize":
			if mode == listRefuses {
				refuse()
				break
			}
			answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"hostile","version":"1"}}`)
		case "tools/list":
			pages++
			io.WriteString(out, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`)
			hostileTools(out, mode, pages)
			io.WriteString(out, "}\n")
		case "tools/call":
			if m.Params.Name == "fails" {
				refuse()
				break
			}
			hostileCall(out, m.Params.Name)
			answer(hostileResult(m.Params.Name, pages))
		default:
			answer(`{}`)
		}
		out.Flush()
	}
}

func quotedJSON(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// hostileTools writes the result of tools/list.
func hostileTools(w io.Writer, mode string, page int) {
	huge := strings.Repeat("x", 1<<20)
	io.WriteString(w, `{"tools":[{"name":"work","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
	switch mode {
	case listMillion:
		for i := range 1_000_000 / fieldLarger {
			fmt.Fprintf(w, `,{"name":"t%d","inputSchema":{}}`, i)
		}
	case listEndless:
		fmt.Fprintf(w, `,{"name":"p%d","inputSchema":{}}],"nextCursor":"%d"}`, page, page)
		return
	case listHuge:
		for i := range 8 {
			fmt.Fprintf(w, `,{"name":"%d-%d-%s","title":%q,"description":%q,"inputSchema":{"x":%q},"outputSchema":{"x":%q},"annotations":{"title":%q}}`,
				page, i, huge, huge, huge, huge, huge, huge)
		}
		if page < hugePages {
			fmt.Fprintf(w, `],"nextCursor":"%d"}`, page)
			return
		}
	case listSpiteful:
		fmt.Fprintf(w, `,{"name":%s,"title":%s,"description":%s,"inputSchema":{}}`, quotedJSON(spite), quotedJSON(spite), quotedJSON(spite))
	}
	io.WriteString(w, "]}")
}

// hostileCall writes what comes before the answer to a call of a tool.
func hostileCall(w io.Writer, tool string) {
	switch tool {
	case "floods of notifications":
		for i := range 200_000 / fieldLarger {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%d"}}`+"\n", i)
		}
	case "floods of progress":
		for i := range 200_000 / fieldLarger {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%d}}`+"\n", i, i)
		}
	case "floods of answers":
		for i := range 100_000 / fieldLarger {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", 1_000_000+i)
		}
	case "ids of a megabyte":
		id := strings.Repeat("9", 1<<20)
		for range 50 {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"%s","result":{}}`+"\n"+`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id, id)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"%s","progress":1}}`+"\n", id)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%s"}}`+"\n", id)
		}
	case "floods of lines":
		for range 100_000 / fieldLarger {
			io.WriteString(w, "this is no frame\n")
		}
	case "deep frames":
		for _, half := range []string{"[", `{"a":`} {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","method":"notifications/message","params":%s`+"\n", strings.Repeat(half, 1_000_000))
		}
	case "speaks":
		fmt.Fprintln(os.Stderr, spite)
		io.WriteString(w, strings.ReplaceAll(spite, "\n", " ")+"\n")
	}
}

// hostileResult is the result of a call of a tool.
func hostileResult(tool string, pages int) string {
	switch tool {
	case "pages": // how many were asked for
		return fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, pages)
	case "9000 deep", "100000 deep":
		depth := 0
		fmt.Sscan(tool, &depth)
		return `{"content":[],"structuredContent":` + strings.Repeat(`{"a":[`, depth/2) + strings.Repeat(`]}`, depth/2) + `}`
	case "64 MiB":
		return `{"content":[{"type":"text","text":"` + strings.Repeat("x", 64<<20-200) + `"}]}`
	}
	return `{"content":[{"type":"text","text":"done"}]}`
}
