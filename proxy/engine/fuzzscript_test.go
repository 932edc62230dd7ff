package engine_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// scripted is an engine between a client and a server that say what a script has them say, with all that is known of both.
type scripted struct {
	t     *testing.T
	setup *setup
	e     *engine.Engine
	now   time.Time
	trace strings.Builder
	done  bool

	// The client.
	open      []openRequest  // its requests that have no answer, in order
	repeated  map[string]int // keys of ids under which several were open at a time; how many answers may be missing
	refusals  int            // answers that are due to frames which are no message
	questions []int64        // ids of what it was asked
	batches   bool           // it has sent a batch that counts as one
	gone      bool

	// The server.
	life     simLife
	gen      uint64
	ids      map[int64]bool // all that the engine has used
	got      []int64        // ids of the requests that its present life has read
	calls    []int64        // those of them that are tools/call
	asked    map[string]int // by key of an id: its questions that are not answered
	took     bool           // it has taken requests back
	obeys    bool           // it answers initialize and tools/list by itself
	replies  []simAsked
	takes    bool // its host takes frames back
	clogged  bool // it reads nothing
	queue    []simFrame
	answers  []engine.Event // of its host
	commands int            // by which it was to be started
}

// openRequest is a request of the client.
type openRequest struct {
	key, raw, method, token string
	admitted                time.Time
}

// eras are how a session may begin: the revision of its handshake, "" for none, and whether the engine's host takes frames back.
var eras = []struct {
	protocol string
	takes    bool
}{{"2025-06-18", true}, {batches, false}, {"", true}}

func newScripted(t *testing.T, s *setup, era uint8) *scripted {
	begin := eras[int(era)%len(eras)]
	w := &scripted{t: t, setup: s, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), repeated: map[string]int{}, ids: map[int64]bool{}, asked: map[string]int{}, obeys: true, takes: begin.takes}
	server, compiled := s.compile()
	w.e = engine.New(engine.Config{Server: server, Policy: compiled, Seed: uint64(era), LogLevel: engine.LevelDebug, TakesBack: begin.takes})
	w.feed(engine.Event{Kind: engine.Tick})
	if begin.protocol != "" {
		w.play(`> {"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + begin.protocol + `","capabilities":{},"clientInfo":{"name":"fuzz","version":"1"}}}`)
		w.play(`> {"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return w
}

// play plays a line of a script.
func (w *scripted) play(line string) {
	w.trace.WriteString(line + "\n")
	word, rest, _ := strings.Cut(line, " ")
	if word != "!" {
		w.comesUp()
	}
	n, _ := strconv.Atoi(rest)
	switch word {
	case ">", ">>", "<", "<<":
		frame := w.filled(rest, word[0] == '>')
		reader := jsonrpc.NewReader(bytes.NewReader(frame), 0)
		if read, _, err := reader.Next(); err == nil { // there are bytes that a transport would not hand on
			w.say(word, bytes.Clone(read))
		}
	case "+":
		w.advance(time.Duration(min(max(n, 1), 100_000)) * time.Millisecond)
	case "x":
		if w.speaks() {
			w.ends(false, n)
		}
	case "!":
		if w.life == simStarting {
			w.ends(true, 0)
		}
	case "z":
		w.clogged = !w.clogged && w.takes
		w.feed(engine.Event{Kind: engine.Tick})
	case "a":
		w.obeys = !w.obeys
	case "r":
		server, compiled := w.setup.compile()
		other := *server
		w.commands++
		other.Args = []string{strconv.Itoa(w.commands)}
		w.feed(engine.Event{Kind: engine.Reload, Server: &other, Policy: compiled})
	case ".":
		w.leave()
	case "~":
		w.gone = true
		w.feed(engine.Event{Kind: engine.Terminate})
	}
}

// filled is a text of a script with the ids that it refers to: of the client's or the server's latest requests.
func (w *scripted) filled(text string, toServer bool) []byte {
	ids := w.got
	if toServer {
		ids = w.questions
	}
	for i := range min(len(ids), 9) {
		text = strings.ReplaceAll(text, "#"+strconv.Itoa(i+1), strconv.FormatInt(ids[len(ids)-1-i], 10))
	}
	return []byte(text)
}

// say has one of the two say something.
func (w *scripted) say(word string, frame []byte) {
	head, tail := frame[:len(frame)*2/3], frame[len(frame)/3:] // of what is over the limit
	switch {
	case word == ">" && !w.gone:
		w.clientSays(frame)
	case word == ">>" && !w.gone:
		due := w.refusals
		if _, response, _ := jsonrpc.LooseID(head, tail); !response {
			w.refusals++
		}
		w.feed(engine.Event{Kind: engine.ClientTooBig, Frame: head, Tail: tail, Size: 1 << 30})
		w.checkRefused(due, frame)
	case word == "<" && w.speaks():
		w.serverAsks(frame)
		w.feed(engine.Event{Kind: engine.FromServer, Gen: w.gen, Frame: frame})
	case word == "<<" && w.speaks():
		if id, response, ok := jsonrpc.LooseID(head, tail); ok && !response {
			w.asked[jsonrpc.CanonicalID(id)]++
		}
		w.feed(engine.Event{Kind: engine.ServerTooBig, Gen: w.gen, Frame: head, Tail: tail, Size: 1 << 30})
	}
}

func (w *scripted) clientSays(frame []byte) {
	due := w.refusals
	if isBatch(frame) && w.e.State(w.now).Peer.Protocol == batches && engine.WrongBatch(frame) == "" {
		w.batches = true
		for _, element := range elements(string(frame)) {
			w.expect([]byte(element), true)
		}
	} else {
		w.expect(frame, false)
	}
	w.feed(engine.Event{Kind: engine.FromClient, Frame: frame})
	w.checkRefused(due, frame)
}

// isBatch reports whether a frame is JSON, and an array.
func isBatch(frame []byte) bool {
	var m jsonrpc.Message
	fault := jsonrpc.Parse(frame, &m)
	return fault != nil && fault.Batch && fault.Code == jsonrpc.CodeInvalidRequest
}

// expect takes in what must come of a frame of the client.
func (w *scripted) expect(frame []byte, inBatch bool) {
	var m jsonrpc.Message
	if jsonrpc.Parse(frame, &m) != nil {
		w.refusals++
		return
	}
	r := openRequest{raw: string(m.ID.Of(frame)), method: string(m.Method), admitted: w.now}
	r.key = jsonrpc.CanonicalID([]byte(r.raw))
	switch {
	case m.Kind == jsonrpc.Request && inBatch && r.method == "initialize":
		w.refusals++
	case m.Kind == jsonrpc.Request:
		meta, _ := jsonrpc.Lookup(frame, m.Params, "_meta")
		token, _ := jsonrpc.Lookup(frame, meta, "progressToken")
		r.token = string(token.Of(frame))
		if slices.ContainsFunc(w.open, func(other openRequest) bool { return other.key == r.key }) {
			w.repeated[r.key] += 0
		}
		w.open = append(w.open, r)
	case m.Kind == jsonrpc.Notification && r.method == "notifications/cancelled":
		if span, ok := jsonrpc.Lookup(frame, m.Params, "requestId"); ok {
			w.cancelled(jsonrpc.CanonicalID(span.Of(frame)))
		}
	}
}

// cancelled takes in that the client takes back the request of an id, by its key.
func (w *scripted) cancelled(key string) {
	if _, repeated := w.repeated[key]; repeated {
		w.repeated[key]++ // which of them has its answer is not known
		return
	}
	w.open = slices.DeleteFunc(w.open, func(r openRequest) bool { return r.key == key && r.method != "initialize" })
}

// serverAsks takes in what a frame of the server asks.
func (w *scripted) serverAsks(frame []byte) {
	if fixed, broken := jsonrpc.Repair(frame); broken {
		frame = fixed
	}
	var m jsonrpc.Message
	switch {
	case isBatch(frame):
		for _, element := range elements(string(frame)) {
			w.serverAsks([]byte(element))
		}
	case jsonrpc.Parse(frame, &m) != nil:
	case m.Kind == jsonrpc.Request:
		w.asked[jsonrpc.CanonicalID(m.ID.Of(frame))]++
	case string(m.Method) == "notifications/cancelled":
		w.took = true
	}
}
