package engine

import (
	"fmt"
	"strconv"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// resultShape is what a revision of MCP says of a tool result (schema.ts of each, CallToolResult and ContentBlock). Members that it
// does not name are free.
type resultShape struct {
	revision   string
	audio      bool // blocks of audio; since 2025-03-26
	structured bool // structuredContent, and blocks that link to resources; since 2025-06-18
	anyValue   bool // structuredContent may be any JSON value, and resultType says what a result is; since 2026-07-28
}

// shapeOf returns the shape of results in the revision that client and server have agreed on. Of an unknown one the latest is taken:
// it allows the most.
func shapeOf(revision string) resultShape {
	if revision == "" {
		return resultShape{revision: "MCP", audio: true, structured: true, anyValue: true}
	}
	return resultShape{
		revision: revision, audio: revision >= "2025-03-26", structured: revision >= "2025-06-18", anyValue: revision >= "2026-07-28",
	}
}

// wrong says what is wrong with a result, "" if nothing is. A member that is repeated must be right each time.
func (s resultShape) wrong(result []byte) string {
	if len(result) == 0 || result[0] != '{' {
		return "the result must be an object"
	}
	content := false
	for member := range jsonrpc.Members(result, whole(result)) {
		raw := member.Value.Of(result)
		wrong := ""
		switch string(member.Key) {
		case "content":
			content = true
			wrong = s.wrongContent(result, member.Value)
		case "isError":
			if word := string(raw); word != "true" && word != "false" {
				wrong = "isError must be true or false"
			}
		case "structuredContent":
			if s.structured && !s.anyValue && raw[0] != '{' {
				wrong = "structuredContent must be an object"
			}
		case "_meta":
			if raw[0] != '{' {
				wrong = "_meta must be an object"
			}
		}
		if wrong != "" {
			return wrong
		}
	}
	if !content {
		return "content is missing"
	}
	return ""
}

// wrongPartial says what is wrong with a result that claims to be no final one. What it holds instead is not looked at.
func (s resultShape) wrongPartial(result []byte) string {
	span, ok := jsonrpc.Lookup(result, whole(result), "resultType")
	if !ok || !s.anyValue {
		return ""
	}
	switch raw := span.Of(result); string(raw) {
	case `"complete"`, `"input_required"`, `"task"`:
		return ""
	default:
		return "resultType is " + shortened(raw) + ", which " + s.revision + " does not know"
	}
}

func (s resultShape) wrongContent(frame []byte, content jsonrpc.Span) string {
	if frame[content.Start] != '[' {
		return "content must be a list"
	}
	i := 0
	for block := range jsonrpc.Elements(frame, content) {
		if wrong := s.wrongBlock(frame, block); wrong != "" {
			return fmt.Sprintf("content[%d]%s", i, wrong)
		}
		i++
	}
	return ""
}

// wrongBlock says what is wrong with a block of content, as what follows its name.
func (s resultShape) wrongBlock(frame []byte, block jsonrpc.Span) string {
	if frame[block.Start] != '{' {
		return " must be an object"
	}
	span, ok := jsonrpc.Lookup(frame, block, "type")
	if !ok {
		return " has no type"
	}
	kind, _ := jsonrpc.Text(span.Of(frame))
	switch {
	case kind == "text":
		return wrongTexts(frame, block, "text")
	case kind == "image", kind == "audio" && s.audio:
		return wrongTexts(frame, block, "data", "mimeType")
	case kind == "resource_link" && s.structured:
		return wrongTexts(frame, block, "uri", "name")
	case kind == "resource":
		return wrongResource(frame, block)
	}
	return " is of type " + shortened(span.Of(frame)) + ", which " + s.revision + " does not know"
}

func wrongResource(frame []byte, block jsonrpc.Span) string {
	resource, ok := jsonrpc.Lookup(frame, block, "resource")
	if !ok || frame[resource.Start] != '{' {
		return ".resource must be an object"
	}
	if wrong := wrongTexts(frame, resource, "uri"); wrong != "" {
		return ".resource" + wrong
	}
	if wrongTexts(frame, resource, "text") != "" && wrongTexts(frame, resource, "blob") != "" {
		return ".resource must have a text or a blob"
	}
	return ""
}

// wrongTexts says which of the members that must be texts is none.
func wrongTexts(frame []byte, object jsonrpc.Span, names ...string) string {
	for _, name := range names {
		if span, ok := jsonrpc.Lookup(frame, object, name); !ok || frame[span.Start] != '"' {
			return "." + name + " must be a text"
		}
	}
	return ""
}

// shortened shows a JSON value of the server's in a message.
func shortened(raw []byte) string {
	const most = 40
	if text, ok := jsonrpc.Text(raw); ok {
		raw = []byte(text)
	}
	if len(raw) > most {
		return strconv.Quote(string(raw[:most])) + "…"
	}
	return strconv.Quote(string(raw))
}
