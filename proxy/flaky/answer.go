package flaky

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The answers to methods that a script does not mention.
var defaultResults = map[string]string{
	"ping":                     `{}`,
	"logging/setLevel":         `{}`,
	"resources/subscribe":      `{}`,
	"resources/unsubscribe":    `{}`,
	"resources/list":           `{"resources":[{"uri":"flaky://one","name":"one","mimeType":"text/plain"}]}`,
	"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"flaky://{name}","name":"any"}]}`,
	"resources/read":           "{\"contents\":[{\"uri\":\"flaky://one\",\"mimeType\":\"text/plain\",\"text\":\"one\u2028two\"}]}",
	"prompts/list":             `{"prompts":[{"name":"greet","arguments":[{"name":"who","required":true}]}]}`,
	"prompts/get":              `{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`,
	"completion/complete":      `{"completion":{"values":["a","b"],"total":2,"hasMore":false}}`,
}

const allCapabilities = `{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},` +
	`"prompts":{"listChanged":true},"logging":{},"completions":{}}`

// newestLegacy is the revision of a server whose client does not say which one it wants.
const newestLegacy = "2025-11-25"

// answerText is the member of the answer that carries the outcome: its result or error, with the name in front.
func (l *life) answerText(o *Outcome, m message, execution int, told Raw) string {
	switch {
	case o.Error != nil:
		text, err := marshal(o.Error)
		if err != nil { // data that is no JSON
			return `"error":` + errorText(o.Error.Code, o.Error.Message)
		}
		return `"error":` + string(text)
	case o.IsError != "":
		return fmt.Sprintf(`"result":{"content":[{"type":"text","text":%s}],"isError":true}`, quote(o.IsError+mark(o)))
	case o.Result != nil:
		return `"result":` + string(o.Result)
	case o.ResultText != "":
		return `"result":` + o.ResultText
	case o.Text != "":
		return `"result":` + textResult(o.Text+mark(o))
	case o.Big > 0:
		return `"result":` + textResult(strings.Repeat("x", o.Big))
	case m.Method == "tools/call":
		return `"result":` + textResult(report(callOf(m), execution, told)+mark(o))
	default:
		return l.methodAnswer(o, m)
	}
}

// mark is the place of the bad byte in a text.
func mark(o *Outcome) string {
	if o.BadByte == 0 {
		return ""
	}
	return badByteMark
}

// report is the text of an ordinary result: it shows which execution it was, and of what.
func report(call callParams, execution int, told Raw) string {
	arguments := call.Arguments
	if arguments == nil {
		arguments = Raw("null")
	}
	text := fmt.Sprintf(`{"tool":%s,"execution":%d,"arguments":%s`, quote(call.Name), execution, arguments)
	if told != nil {
		text += `,"told":` + string(told)
	}
	return text + "}"
}

// methodAnswer is the answer of a server that behaves to a request other than tools/call.
func (l *life) methodAnswer(o *Outcome, m message) string {
	switch m.Method {
	case "initialize":
		return `"result":` + l.introduction(o, m)
	case "tools/list":
		return l.page(m)
	}
	if result, ok := defaultResults[m.Method]; ok {
		return `"result":` + result
	}
	if strings.HasPrefix(m.Method, "vendor/") {
		params := m.Params
		if params == nil {
			params = Raw("{}")
		}
		return fmt.Sprintf(`"result":{"method":%s,"params":%s}`, quote(m.Method), params)
	}
	return `"error":` + errorText(-32601, "Method not found: "+m.Method)
}

// introduction is the result of initialize.
func (l *life) introduction(o *Outcome, m message) string {
	var asked struct {
		Protocol string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(m.Params, &asked) // no version is as good as none
	name, protocol, capabilities := l.script.Name, l.script.Protocol, string(l.script.Capabilities)
	if name == "" {
		name = "flaky"
	}
	if protocol == "" {
		protocol = asked.Protocol
	}
	if protocol == "" {
		protocol = newestLegacy
	}
	if capabilities == "" {
		capabilities = allCapabilities
	}
	text := fmt.Sprintf(`{"protocolVersion":%s,"capabilities":%s,"serverInfo":{"name":%s,"version":"1.2.3"}`,
		quote(protocol), capabilities, quote(name))
	if instructions := l.script.Instructions + mark(o); instructions != "" {
		text += `,"instructions":` + quote(instructions)
	}
	return text + "}"
}

// page is one page of tools/list.
func (l *life) page(m message) string {
	var asked struct {
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(m.Params, &asked) // no cursor is the first page
	var tools []string
	for _, tool := range l.script.Tools {
		if l.has(tool) {
			tools = append(tools, tool.listed())
		}
	}
	first := 0
	if asked.Cursor != "" {
		n, err := strconv.Atoi(asked.Cursor)
		if err != nil || n < 0 || n > len(tools) {
			return `"error":` + errorText(-32602, "Invalid cursor: "+asked.Cursor)
		}
		first = n
	}
	last, more := len(tools), ""
	if size := l.script.PageSize; size > 0 && first+size < last {
		last = first + size
		more = fmt.Sprintf(`,"nextCursor":"%d"`, last)
	}
	return fmt.Sprintf(`"result":{"tools":[%s]%s}`, strings.Join(tools[first:last], ","), more)
}

// listed is the tool's entry in tools/list.
func (t Tool) listed() string {
	entry := map[string]Raw{
		"name":        Raw(quote(t.Name)),
		"description": Raw(quote(t.Description)),
		"inputSchema": Raw(`{"type":"object"}`),
	}
	if t.Description == "" {
		entry["description"] = Raw(quote("The tool " + t.Name + "."))
	}
	if t.Annotations != nil {
		if text, err := marshal(t.Annotations); err == nil {
			entry["annotations"] = text
		}
	}
	if t.Definition != nil {
		_ = json.Unmarshal(t.Definition, &entry) // members that stand there replace ours
	}
	text, err := marshal(entry)
	if err != nil {
		return quote(err.Error())
	}
	return string(text)
}

func textResult(text string) string {
	return `{"content":[{"type":"text","text":` + quote(text) + `}]}`
}

func errorText(code int64, message string) string {
	return fmt.Sprintf(`{"code":%d,"message":%s}`, code, quote(message))
}

// quote is a text as a JSON string.
func quote(text string) string {
	quoted, err := marshal(text)
	if err != nil {
		return `""`
	}
	return string(quoted)
}
