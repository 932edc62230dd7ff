package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing/iotest"
	"time"
)

// faultServerCommand, as the first argument, makes the test binary a server whose calls say themselves what goes wrong with
// them: their arguments are a faultOrder. Its second argument is the path of its [faultBook]; a third one, faultSip, has it
// read a byte at a time.
const faultServerCommand = "__fault-server"

const faultSip = "sip"

// faultOrder are the arguments of a call.
type faultOrder struct {
	N     int    `json:"n"`     // the call's number in the book
	Fault string `json:"fault"` // what goes wrong with its first attempt; "" = nothing
	Size  int    `json:"size"`  // characters that the answer has beside its words; of a flood, bytes
	Pad   string `json:"pad"`   // makes the call long
}

// Points in a call at which the server dies as if by kill -9.
const (
	dieUnread   = "die unread"   // before the next frame is looked at: this call is answered, and death comes once another arrives
	dieRead     = "die read"     // after the call was read, before it was done
	dieDone     = "die done"     // after it was done, before the answer
	dieHalf     = "die half"     // within the bytes of the answer
	dieUnended  = "die unended"  // after the answer, but for its newline
	dieAnswered = "die answered" // after the answer
)

// Other faults. Where not said otherwise, the call is not done.
const (
	faultError     = "error"     // a transient error
	faultExit      = "exit"      // the process exits
	faultHang      = "hang"      // the call is done and never answered
	faultMalformed = "malformed" // it is done, and a line that is no JSON comes in place of the answer
	faultLate      = "late"      // it is done, and answered after [faultLateness]
	faultTwice     = "twice"     // it is done, and answered twice
	faultFlood     = "flood"     // notifications of that size go out first, and nothing is read meanwhile
)

const faultLateness = 700 * time.Millisecond

// faultTools are the tools, by what the server says of them.
const faultTools = `{"tools":[` +
	`{"name":"reads","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
	`{"name":"repeats","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"idempotentHint":true}},` +
	`{"name":"plain","inputSchema":{"type":"object"}},` +
	`{"name":"pays","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false}}]}`

// faultServer is one life of the server.
type faultServer struct {
	book *faultBook
	in   *bufio.Reader
	mu   sync.Mutex // of stdout
}

// faultServerMain is the server's process. It ends with its input.
func faultServerMain() int {
	book, err := openFaultBook(os.Args[2])
	if err == nil {
		err = book.begin()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var input io.Reader = os.Stdin
	if len(os.Args) > 3 && os.Args[3] == faultSip {
		input = iotest.OneByteReader(input)
	}
	s := &faultServer{book: book, in: bufio.NewReaderSize(input, 64<<10)}
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		s.take(line)
	}
}

func (s *faultServer) take(line []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Version   string `json:"protocolVersion"`
			Arguments faultOrder
		}
	}
	if json.Unmarshal(line, &m) != nil || m.ID == nil {
		return
	}
	switch m.Method {
	case "initialize":
		s.write(faultResult(m.ID, `{"protocolVersion":`+strconv.Quote(m.Params.Version)+
			`,"capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"faulty","version":"1"}}`))
	case "tools/list":
		s.write(faultResult(m.ID, faultTools))
	case "tools/call":
		s.call(m.ID, m.Params.Arguments)
	default:
		s.write(faultResult(m.ID, "{}"))
	}
}

// call does a call, or what goes wrong with it.
func (s *faultServer) call(id json.RawMessage, o faultOrder) {
	if s.book.attempt(o.N) > 1 {
		o.Fault = ""
	}
	switch o.Fault {
	case dieRead:
		die()
	case faultExit:
		os.Exit(3)
	case faultError:
		s.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32000,"message":"busy"}}` + "\n")
		return
	}
	execution := s.book.execute(o.N)
	size := o.Size
	if o.Fault == faultFlood {
		s.flood(o.Size)
		size = 0
	}
	answer := faultResult(id, fmt.Sprintf(`{"content":[{"type":"text","text":"n=%d execution=%d %s"}]}`, o.N, execution, strings.Repeat("x", size)))
	switch o.Fault {
	case faultHang:
	case dieDone:
		die()
	case dieHalf:
		s.write(answer[:len(answer)/2])
		die()
	case dieUnended:
		s.write(answer[:len(answer)-1])
		die()
	case dieAnswered:
		s.write(answer)
		die()
	case dieUnread:
		s.write(answer)
		s.in.Peek(1) // waits for it, and does not take it
		die()
	case faultMalformed:
		s.write("Traceback (most recent call last):\n")
	case faultLate:
		time.AfterFunc(faultLateness, func() { s.write(answer) })
	case faultTwice:
		s.write(answer + answer)
	default:
		s.write(answer)
	}
}

// flood writes numbered notifications of about so many bytes together.
func (s *faultServer) flood(size int) {
	pad := strings.Repeat("y", faultFloodPiece)
	for i := range size / faultFloodPiece {
		s.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"%d","data":%q}}`+"\n", i, pad))
	}
}

const faultFloodPiece = 64 << 10

func (s *faultServer) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	io.WriteString(os.Stdout, text)
}

func faultResult(id json.RawMessage, result string) string {
	return `{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + "}\n"
}

// die ends the process as kill -9 does.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		self.Kill()
	}
	select {} // until it has come
}

// A faultBook is the ledger of the server, across its lives: a byte for each call, how often it came in the upper half and how
// often it was done in the lower, and beside it a list of the lives. It costs a write a call, and no more to read than one.
// A life that is killed loses nothing of it. Only one life writes at a time, and only one goroutine of it.
type faultBook struct {
	path  string
	calls *os.File
}

func openFaultBook(path string) (*faultBook, error) {
	calls, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	return &faultBook{path, calls}, err
}

// begin notes that a life has begun.
func (b *faultBook) begin() error {
	lives, err := os.OpenFile(b.path+".lives", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(lives, os.Getpid())
	return errors.Join(err, lives.Close())
}

// lives are the process ids of the lives so far.
func (b *faultBook) lives() []int {
	text, _ := os.ReadFile(b.path + ".lives") // none yet
	var pids []int
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSuffix(line, "\n")); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// last is the process id of the last life; 0 = there was none.
func (b *faultBook) last() int {
	lives, err := os.Open(b.path + ".lives")
	if err != nil {
		return 0
	}
	defer lives.Close()
	text := make([]byte, 64)
	end, _ := lives.Seek(0, io.SeekEnd)
	n, _ := lives.ReadAt(text, max(0, end-int64(len(text))))
	words := strings.Fields(string(text[:n]))
	if len(words) == 0 {
		return 0
	}
	pid, _ := strconv.Atoi(words[len(words)-1])
	return pid
}

func (b *faultBook) attempt(n int) int { return int(b.add(n, 0x10) >> 4) }
func (b *faultBook) execute(n int) int { return int(b.add(n, 0x01) & 15) }

// add counts, up to 15.
func (b *faultBook) add(n int, what byte) byte {
	var count [1]byte
	b.calls.ReadAt(count[:], int64(n)) // what was never written is 0
	if mask := what * 15; count[0]&mask != mask {
		count[0] += what
		b.calls.WriteAt(count[:], int64(n))
	}
	return count[0]
}

// counts are how often a call came, and how often it was done.
func (b *faultBook) counts(n int) (attempts, executions int) {
	var count [1]byte
	b.calls.ReadAt(count[:], int64(n))
	return int(count[0] >> 4), int(count[0] & 15)
}
