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

// watchEvery is how often a watched file is looked at. A change counts once two looks in a row find the same: the file may be
// in the middle of being written.
const watchEvery = time.Second

// maxFaults bounds the records about one faulty config.
const maxFaults = 20

// A watch looks after the config file of a session.
type watch struct {
	session *session
	file    string
	reread  func() (Options, error)
	tell    func(error) // what a reload came to; nil = nobody

	seen    stamp  // at the last look
	settled bool   // seen has been looked into
	text    []byte // of the file when it was last looked into
	missing bool   // and that was said
}

// A stamp tells whether a file may have changed.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(info os.FileInfo) stamp { return stamp{info.ModTime(), info.Size()} }

// newWatch returns a watch over the file that the session was configured from.
func newWatch(s *session, o *Options) *watch {
	w := &watch{session: s, file: o.Watch, reread: o.Reread, tell: o.Reloaded, settled: true}
	if w.reread == nil {
		name := ""
		if len(s.links) == 1 {
			name = s.links[0].server.Name
		}
		w.reread = func() (Options, error) { return Open(w.file, name) }
	}
	if info, err := os.Stat(w.file); err == nil {
		w.seen = stampOf(info)
	}
	w.text, _ = os.ReadFile(w.file)
	return w
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
		}
	}
}

// look takes the file over if it has changed, and is at rest.
func (w *watch) look() {
	info, err := os.Stat(w.file)
	if err != nil {
		if !w.missing && !errors.Is(err, fs.ErrNotExist) { // an editor may be about to put another in its place
			w.refuse(err.Error())
		}
		w.missing = !errors.Is(err, fs.ErrNotExist)
		return
	}
	w.missing = false
	if now := stampOf(info); now != w.seen {
		w.seen, w.settled = now, false
		return
	}
	if w.settled {
		return
	}
	w.settled = true
	text, err := os.ReadFile(w.file)
	if err != nil {
		w.refuse(err.Error())
		return
	}
	if bytes.Equal(text, w.text) {
		return
	}
	w.text = text
	w.take()
}

// take puts the config in force that the file holds by now, whole or not at all.
func (w *watch) take() {
	o, err := w.reread()
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
	w.session.log.record(time.Now(), &engine.Record{
		Level: engine.LevelError, Event: "config_reload", Server: w.session.links[0].server.Name, Detail: "refused, the old config stays: " + why,
	})
}

// reload puts another config of the same servers in force.
func (s *session) reload(o Options) error {
	members, err := o.members()
	if err != nil {
		return err
	}
	if len(members) != len(s.links) {
		return fmt.Errorf("it has %d servers instead of %d: start mcp-retry anew", len(members), len(s.links))
	}
	for i, m := range members {
		if m.Server.Name != s.links[i].server.Name {
			return fmt.Errorf("it is not the config of %q", s.links[i].server.Name)
		}
	}
	s.mu.Lock()
	for i, m := range members {
		l := s.links[i]
		l.launch = m.Server
		s.step(l, engine.Event{Kind: engine.Reload, Server: m.Server, Policy: m.Policy}, nil)
	}
	s.mu.Unlock()
	s.flush()
	return nil
}
