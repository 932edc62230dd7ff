package jsonrpc

import (
	"strings"
	"testing"
)

func TestLooseID(t *testing.T) {
	const x = edgeBytes * 3
	text := `"` + strings.Repeat("x", x) + `"`
	decoy := `"` + strings.Repeat(`,\"id\":9}`, x/8) + `"`
	for _, tt := range []struct {
		name     string
		line     string
		id       string // empty: none can be told
		response bool
	}{
		{"request, id at the head", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":` + text + `}}`, `7`, false},
		{"result, id at the head", `{"jsonrpc":"2.0","id":"a-1","result":{"a":` + text + `}}`, `"a-1"`, true},
		{"result, id at the tail", `{"result":{"a":` + text + `},"jsonrpc":"2.0","id":7}`, `7`, true},
		{"result, id before the version", `{"result":` + text + `, "id" : -7.0 , "jsonrpc" : "2.0" } `, `-7.0`, true},
		{"error, id at the tail", `{"error":{"code":1,"message":` + text + `},"id":"x\"y"}`, `"x\"y"`, true},
		{"result key after a big unknown member", `{"z":` + text + `,"result":true,"id":7}`, `7`, true},
		{"method at the tail", `{"id":7,"params":{"result":` + text + `},"method":"m","jsonrpc":"2.0"}`, `7`, false},
		{"request with the id behind params", `{"jsonrpc":"2.0","method":"m","params":[` + text + `],"id":7}`, `7`, false},
		{"escaped name", `{"jsonrpc":"2.0","\u0069d":7,"result":` + text + `}`, `7`, true},
		{"text full of decoys", `{"jsonrpc":"2.0","id":7,"result":` + decoy + `}`, `7`, true},
		{"id nested at the head only", `{"params":{"id":7,"x":` + text + `},"jsonrpc":"2.0"}`, ``, false},
		{"id nested at the tail only", `{"result":{"x":` + text + `,"id":7}}`, ``, true},
		{"id nested in a list at the tail", `{"result":[` + text + `,{"id":7}]}`, ``, true},
		{"decoys at the tail only", `{"result":` + decoy + `}`, ``, true},
		{"id in the middle", `{"result":{"a":` + text + `},"id":7,"params":{"a":` + text + `}}`, ``, true},
		{"two ids", `{"id":7,"result":` + text + `,"id":8}`, ``, true},
		{"null id", `{"id":null,"error":` + text + `}`, ``, true},
		{"object as id", `{"id":{"a":1},"result":` + text + `}`, ``, true},
		{"id over the limit", `{"jsonrpc":"2.0","id":` + text + `,"method":"m"}`, ``, false},
		{"number as id over the limit", `{"jsonrpc":"2.0","id":` + strings.Repeat("1", x) + `,"method":"m"}`, ``, false},
		{"id that fills the end", `{"jsonrpc":"2.0","method":"m","id":` + strings.Repeat("1", x) + `}`, ``, false},
		{"ID in other case", `{"ID":7,"result":` + text + `,"Id":7}`, ``, true},
		{"batch", `[{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":` + text + `}}]`, ``, false},
		{"text", strings.Repeat("x", x), ``, false},
		{"string", `"` + strings.Repeat("x", x) + `,"id":7}`, ``, false},
		{"quotes", strings.Repeat(`"`, x), ``, false},
		{"backslashes", `{"a":"` + strings.Repeat(`\`, x) + `","id":7}`, `7`, false},
		{"brackets", strings.Repeat(`{"id":`, x), ``, false},
		{"empty", ``, ``, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			line := []byte(tt.line)
			head, tail := line[:min(len(line), edgeBytes)], line[max(0, len(line)-edgeBytes):]
			id, response, ok := LooseID(head, tail)
			if string(id) != tt.id || ok != (tt.id != "") || response != tt.response {
				t.Errorf("LooseID = %.40q, response %v, %v; want %q, %v", id, response, ok, tt.id, tt.response)
			}
		})
	}
}

func TestLooseIDOfOverlappingEnds(t *testing.T) {
	line := []byte(`{"jsonrpc":"2.0","id":7,"result":{"id":8}}`)
	for cut := range line {
		id, _, ok := LooseID(line[:len(line)-cut], line[min(cut, 30):])
		if ok && string(id) != "7" {
			t.Errorf("cut by %d: id %s", cut, id)
		}
	}
	if id, response, ok := LooseID(line, line); !ok || string(id) != "7" || !response {
		t.Errorf("whole line: id %s, %v, %v", id, response, ok)
	}
}

// FuzzLooseID holds LooseID against Parse: whatever the ends are cut to, it never names another id.
func FuzzLooseID(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":{"id":8}}`), 20, 15)
	f.Add([]byte(`{"result":{"a":"\",\"id\":9}"},"jsonrpc":"2.0","id":"x\\"}`), 5, 30)
	f.Add([]byte(`{"method":"m","params":[1,{"id":2}],"jsonrpc":"2.0", "id" : -1.5e3 }`), 12, 40)
	f.Fuzz(func(t *testing.T, frame []byte, head, tail int) {
		var m Message
		if Parse(frame, &m) != nil || head < 0 || head > len(frame) || tail < 0 || tail > len(frame) {
			return
		}
		id, response, ok := LooseID(frame[:head], frame[tail:])
		if ok && string(id) != string(m.ID.Of(frame)) {
			t.Errorf("%s cut to %s … %s: id %s", frame, frame[:head], frame[tail:], id)
		}
		if response && !m.Kind.Response() {
			t.Errorf("%s cut to %s … %s: taken for a response", frame, frame[:head], frame[tail:])
		}
	})
}
