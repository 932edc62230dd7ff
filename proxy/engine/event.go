package engine

import (
	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// EventKind says what happened.
type EventKind uint8

const (
	Tick         EventKind = iota // nothing but time has passed: the wake-up time came
	FromClient                    // a frame of the client: Frame
	FromServer                    // a frame of the server's life Gen: Frame
	ClientTooBig                  // the client sent a frame over the limit: Frame is its head, Tail its end, Size its length
	ServerTooBig                  // the server sent a frame over the limit: the same
	ServerUp                      // the process of life Gen runs
	ServerDown                    // life Gen could not be started (Spawn true) or has ended: Detail, Unsent
	ClientEOF                     // the client will send no more: finish what is in flight, then stop
	Terminate                     // we are told to end: answer what is pending and stop at once
	Reload                        // the config has changed: Server, of the same name, and Policy are in force from now on
	TakenBack                     // what came of the TakeBack action with that Gen and Tag: Taken
)

// Event is one input of the engine. Frame and Tail belong to the caller again when Step returns, unless Owned says that
// the engine may keep them.
type Event struct {
	Kind   EventKind
	Gen    uint64 // life of the server, as given by the StartServer action
	Frame  []byte // one message without its line end
	Tail   []byte
	Size   int64
	Owned  bool
	Spawn  bool    // ServerDown: the process was never started
	Detail string  // ServerDown: what happened, in words: "exit status 3", "signal: killed", `exec: "npx": not found in PATH=…`
	Stderr string  // ServerDown: the last lines it wrote to stderr
	Unsent []int64 // ServerDown: tags of ToServer actions of which not one byte was written
	Tag    int64   // TakenBack
	Taken  bool    // TakenBack: not one byte of the frame was written, and none will be

	Server *schema.Server // Reload; what StartServer starts must be this from now on
	Policy *policy.Policy // Reload
}

// ActionKind says what the shell is to do.
type ActionKind uint8

const (
	ToClient    ActionKind = iota // write a frame to the client: Data, then a newline
	ToServer                      // write a frame to life Gen of the server: Data, then a newline
	StartServer                   // start the server as life Gen; answer with ServerUp or ServerDown
	StopServer                    // end life Gen (its stdin first): Hurry shortens the grace
	Log                           // write a log record: Record
	Finish                        // nothing is left to do: flush the client's output, stop the server, return
	TakeBack                      // take the frame Tag of life Gen out of the queue, or if its first byte was written, write Data, if any; answer with TakenBack
)

// Action is one output of the engine. Data and Record are valid until the next Step: the shell writes or copies them at once.
type Action struct {
	Kind   ActionKind
	Gen    uint64
	Data   [][]byte // consecutive pieces of one frame, without the line end
	Tag    int64    // ToServer: names the request, for Event.Unsent and TakeBack; 0 = nobody asks
	Hurry  bool
	Record *Record
}
