package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// watchEvery is how often a watched file is looked at. What is found counts once two looks in a row find the same: the file may
// be in the middle of being written, or of being replaced by another.
const watchEvery = time.Second

// maxFaults bounds the records about one faulty config.
const maxFaults = 20

// A watch looks after the config file of a session. It compares what the file holds, for neither size nor time tell for sure that
// it is the same: a link may point to another file by now.
type watch struct {
	session *session
	file    string
	reread  func() (Options, error)
	tell    func(error)   // what a reload came to; nil = nobody
	asked   chan struct{} // look at once

	text    []byte // that was looked into last
	seen    []byte // at the last look
	trouble string // why it could not be read at the last look; "" = it could
	said    bool   // and that was logged
}

// newWatch returns a watch over the file that the session was configured from.
func newWatch(s *session, o *Options) *watch {
	w := &watch{session: s, file: o.Watch, reread: o.Reread, tell: o.Reloaded, asked: make(chan struct{}, 1)}
	if w.reread == nil {
		name := ""
		if s.board == nil {
			name = s.links()[0].server.Name
		}
		w.reread = func() (Options, error) { return Open(w.file, name) }
	}
	if w.isFile() {
		w.text, _ = schema.ReadFile(w.file)
		w.seen = w.text
	}
	return w
}

// isFile reports whether there is a file, or nothing. What was read from a pipe cannot be read again.
func (w *watch) isFile() bool {
	info, err := os.Stat(w.file)
	return err != nil || info.Mode().IsRegular()
}

// run looks at the file until the session is over.
func (w *watch) run() {
	ticks := time.NewTicker(watchEvery)
	defer ticks.Stop()
	for {
		select {
		case <-w.session.done:
			return
		case <-ticks.C:
			w.look()
		case <-w.asked:
			w.lookAtOnce()
		}
	}
}

// ask has the watch look at once. It does not block.
func (w *watch) ask() {
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

// read returns what the file holds. Of a pipe that has come into its place it would wait for the end.
func (w *watch) read() ([]byte, error) {
	if info, err := os.Stat(w.file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", w.file)
	}
	return schema.ReadFile(w.file)
}

// look takes the file over if it has changed, and is at rest.
func (w *watch) look() {
	text, err := w.read()
	if err != nil {
		if again := err.Error() == w.trouble; again && !w.said {
			w.cannotRead(err)
		} else if !again {
			w.trouble, w.said = err.Error(), false
		}
		return
	}
	said := w.said
	w.trouble, w.said = "", false
	atRest := bytes.Equal(text, w.seen)
	w.seen = text
	switch {
	case bytes.Equal(text, w.text):
		if said {
			w.note(engine.LevelInfo, "the config file is there again, as it was")
		}
	case atRest:
		w.take(text)
	}
}

// lookAtOnce takes the file over because somebody wants it so, whether it has changed or not.
func (w *watch) lookAtOnce() {
	text, err := w.read()
	if err != nil {
		w.trouble = err.Error()
		w.cannotRead(err)
		return
	}
	w.trouble, w.said = "", false
	w.seen = text
	w.take(text)
}

// cannotRead logs why there is nothing to take over.
func (w *watch) cannotRead(err error) {
	w.said = true
	if errors.Is(err, fs.ErrNotExist) {
		w.note(engine.LevelWarn, "the config file is gone: the config stays as it is until there is one again")
		return
	}
	w.refuse(err.Error())
}

// take puts the config in force that the file holds by now, whole or not at all: nothing happens if it is not that text, for
// then it is being written, and looked at again.
func (w *watch) take(text []byte) {
	o, err := w.reread()
	if again, gone := schema.ReadFile(w.file); gone != nil || !bytes.Equal(again, text) {
		return
	}
	w.text = text
	if err == nil {
		err = w.session.reload(o)
	}
	if w.tell != nil {
		w.tell(err)
	}
	var faulty *ConfigError
	switch {
	case err == nil:
	case errors.As(err, &faulty):
		w.refuseAll(faulty.Findings)
	default:
		w.refuse(err.Error())
	}
}

// refuseAll logs what is wrong with a config.
func (w *watch) refuseAll(findings schema.Findings) {
	for i, f := range findings {
		if i == maxFaults {
			w.refuse(fmt.Sprintf("and %d more", len(findings)-i))
			return
		}
		detail := f.String()
		if f.Hint != "" {
			detail += " (" + f.Hint + ")"
		}
		w.refuse(detail)
	}
}

// refuse logs why the old config stays in force.
func (w *watch) refuse(why string) {
	w.note(engine.LevelError, "refused, the old config stays: "+why)
}

func (w *watch) note(level engine.Level, detail string) {
	r := &engine.Record{Level: level, Event: "config_reload", Detail: detail}
	if links := w.session.links(); len(links) == 1 {
		r.Server = links[0].server.Name
	}
	w.session.log.record(time.Now(), r)
}
