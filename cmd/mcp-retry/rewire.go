package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/tailscale/hujson"
)

// rewiring is what becomes of the entry of a server: another command, other arguments, a type where the client asks for one,
// and nothing else.
type rewiring struct {
	command string
	args    []string
	kind    string         // is added if the entry states no type, and taken away if it did not; "" = neither
	before  *hujson.Object // the entry as it was, to be restored; nil = command and args count
}

// planner says what becomes of an entry, or why it is left as it is.
type planner interface {
	plan(*clientConfig, *clientEntry) (change *rewiring, left leaving)

	// keep sees to it that the entries that a file holds now can be restored. It returns what is to be told of that, or "",
	// and what undoes it if the file is not changed after all.
	keep(*clientConfig) (note string, undo func(), err error)
}

// leaving says why an entry is left as it is. The zero value says that this needs no words.
type leaving struct {
	reason string
	wrong  bool // it should have been changed, and could not be
}

// rewired is a file of a client that is to be changed.
type rewired struct {
	config  *clientConfig
	after   []byte
	entries []string
}

// rewire changes the files of clients by a plan. All is planned before anything is written.
func (u *ui) rewire(clients []string, dryRun bool, p planner) error {
	m, err := thisMachine()
	if err != nil {
		return err
	}
	configs, all, err := u.readClients(m, "", clients)
	if err != nil {
		return err
	}
	var changes []rewired
	failed, seen := false, 0
	for _, c := range configs {
		seen += len(c.entries)
		change, ok := u.planFile(c, p)
		failed = failed || !ok
		if len(change.entries) > 0 {
			changes = append(changes, change)
		}
	}
	if _, restores := p.(restorer); seen == 0 && !restores {
		f := &failure{status: exitFailed, message: "no MCP server was found in the files of " + quoted(orAll(clients))}
		return f.hint("add servers to a client first; mcp-retry doctor shows where it is looked for them")
	}
	for _, change := range changes {
		if err := u.apply(change, dryRun, p); err != nil {
			u.finish(err)
			failed = true
		}
	}
	switch {
	case !all:
		return &failure{status: exitUsage}
	case failed:
		return &failure{status: exitFailed}
	}
	return nil
}

// planFile plans what becomes of a file. What is left as it is, is said; ok is false if it should not have been.
func (u *ui) planFile(c *clientConfig, p planner) (change rewired, ok bool) {
	change, ok = rewired{config: c}, true
	for _, e := range c.entries {
		todo, left := p.plan(c, e)
		if left.reason != "" {
			u.warnf("%q in %s %s: left alone", e.name, e.where(c.clientFile), left.reason)
			ok = ok && !left.wrong
		}
		if todo == nil {
			continue
		}
		e.rewire(todo)
		change.entries = append(change.entries, e.name)
	}
	change.after = c.root.Pack()
	if bytes.HasPrefix(c.text, []byte(utf8BOM)) {
		change.after = append([]byte(utf8BOM), change.after...)
	}
	return change, ok
}

// rewire changes the syntax tree of the entry: two values, or members behind the command that were missing, and everything
// around them stays.
func (e *clientEntry) rewire(todo *rewiring) {
	object := e.value.Value.(*hujson.Object)
	if todo.before == nil {
		memberOf(object, "command").Value.Value = hujson.String(todo.command)
		list := argsValue(todo.args)
		if args := memberOf(object, "args"); args != nil {
			args.Value.Value = list
		} else {
			insertAfter(object, memberOf(object, "command"), "args", list)
		}
		if todo.kind != "" && memberOf(object, "type") == nil {
			insertAfter(object, memberOf(object, "command"), "type", hujson.String(todo.kind))
		}
		return
	}
	kind := memberOf(object, "type")
	if text, _ := textIn(object, "type"); kind != nil && todo.kind == text && memberOf(todo.before, "type") == nil {
		removeInserted(object, kind)
	}
	memberOf(object, "command").Value.Value = memberOf(todo.before, "command").Value.Value
	args := memberOf(object, "args")
	switch before := memberOf(todo.before, "args"); {
	case before != nil && args != nil:
		args.Value.Value = before.Value.Value
	case args != nil:
		removeInserted(object, args)
	}
}

// argsValue is a list of arguments on one line.
func argsValue(args []string) *hujson.Array {
	list := &hujson.Array{}
	for i, word := range args {
		v := hujson.Value{Value: hujson.String(word)}
		if i > 0 {
			v.BeforeExtra = hujson.Extra(" ")
		}
		list.Elements = append(list.Elements, v)
	}
	return list
}

// insertAfter puts a member behind another one, on a line of its own if that has one. A comment on the other's line stays
// there.
func insertAfter(object *hujson.Object, other *hujson.ObjectMember, name string, value hujson.ValueTrimmed) {
	at := memberIndex(object, other)
	added := hujson.ObjectMember{
		Name:  hujson.Value{Value: hujson.String(name), BeforeExtra: hujson.Extra(" ")},
		Value: hujson.Value{Value: value, BeforeExtra: hujson.Extra(" ")},
	}
	if lead := other.Name.BeforeExtra; lineBreak(lead, false) >= 0 {
		indent := lead[lineBreak(lead, true):]
		if comment := bytes.IndexByte(indent, '/'); comment >= 0 { // it stands before the name on its line
			indent = indent[:comment]
		}
		var restOfLine hujson.Extra
		if next := extraBehind(object, at); lineBreak(*next, false) >= 0 {
			end := lineBreak(*next, false)
			restOfLine, *next = (*next)[:end], (*next)[end:]
		}
		added.Name.BeforeExtra = slices.Concat(restOfLine, indent)
	}
	if other.Value.AfterExtra != nil { // a comma follows it even if it is the last
		added.Value.AfterExtra = hujson.Extra{}
	}
	object.Members = slices.Insert(object.Members, at+1, added)
}

// removeInserted undoes insertAfter.
func removeInserted(object *hujson.Object, added *hujson.ObjectMember) {
	at := memberIndex(object, added)
	if lead := added.Name.BeforeExtra; lineBreak(lead, true) >= 0 {
		next := extraBehind(object, at)
		*next = slices.Concat(lead[:lineBreak(lead, true)], *next)
	}
	if at > 0 && at == len(object.Members)-1 { // whether a comma follows the last member is as before
		last := &object.Members[at-1].Value
		switch comma := added.Value.AfterExtra != nil; {
		case comma && last.AfterExtra == nil:
			last.AfterExtra = hujson.Extra{}
		case !comma && last.AfterExtra != nil:
			object.AfterExtra = slices.Concat(last.AfterExtra, object.AfterExtra)
			last.AfterExtra = nil
		}
	}
	object.Members = slices.Delete(object.Members, at, at+1)
}

func memberIndex(object *hujson.Object, m *hujson.ObjectMember) int {
	for i := range object.Members {
		if &object.Members[i] == m {
			return i
		}
	}
	return -1
}

// extraBehind is what stands between the comma of a member and what follows it.
func extraBehind(object *hujson.Object, at int) *hujson.Extra {
	if at+1 < len(object.Members) {
		return &object.Members[at+1].Name.BeforeExtra
	}
	return &object.AfterExtra
}

// lineBreak is where the first or the last line break between members begins, or -1. One inside of a comment ends no line of
// theirs.
func lineBreak(between []byte, last bool) int {
	found := -1
	for i := 0; i < len(between) && (found < 0 || last); i++ {
		rest := between[i:]
		switch {
		case bytes.HasPrefix(rest, []byte("/*")):
			i += max(bytes.Index(rest[2:], []byte("*/"))+3, 1)
		case bytes.HasPrefix(rest, []byte("//")):
			text, _, _ := bytes.Cut(rest, []byte("\n"))
			i += len(bytes.TrimSuffix(text, []byte("\r"))) - 1
		case bytes.HasPrefix(rest, []byte("\r\n")):
			found = i
			i++
		case rest[0] == '\n':
			found = i
		}
	}
	return found
}

// apply writes a file, or shows how it would change.
func (u *ui) apply(change rewired, dryRun bool, p planner) error {
	c := change.config
	if _, err := parseClientConfig(c.clientFile, change.after); err != nil {
		return fmt.Errorf("%s was left alone, for what we made of it is no JSON: %w", c.path, err)
	}
	if dryRun {
		_, err := u.stdout.Write(diff.Diff(c.path, withoutSecrets(c.text), c.path, withoutSecrets(change.after)))
		return err
	}
	kept, undo, err := p.keep(c)
	if err != nil {
		return fmt.Errorf("%s was left alone: no backup could be made: %w", c.path, pathCause(err))
	}
	if err := swapFile(c.path, c.text, change.after); err != nil {
		undo()
		f := &failure{status: exitFailed, message: fmt.Sprintf("%s was left alone: %v", c.path, pathCause(err))}
		if errors.Is(err, errChanged) {
			f.hint("close the client, and run this again")
		}
		return f
	}
	if _, _, err := p.keep(c); err != nil { // for somebody who was refused meanwhile may have thought the backup theirs, and removed it
		u.warnf("%s was changed, and its backup is gone: %v", c.path, pathCause(err))
	}
	fmt.Fprintf(u.stdout, "%s: %s%s\n", c.path, strings.Join(change.entries, ", "), kept)
	return nil
}

// withoutSecrets is the text of a client's file, fit to be shown: what looks like a secret, anywhere in it, is hidden.
func withoutSecrets(text []byte) []byte {
	json := bytes.TrimPrefix(text, []byte(utf8BOM))
	if root, err := parseCommented(json); err == nil {
		hideSecrets(&root, "")
		json = root.Pack()
	}
	return (*schema.Config)(nil).Mask(json)
}

// hideSecrets hides the secrets in a value of that name.
func hideSecrets(v *hujson.Value, name string) {
	switch value := v.Value.(type) {
	case *hujson.Object:
		for i := range value.Members {
			hideSecrets(&value.Members[i].Value, nameOf(&value.Members[i]))
		}
	case *hujson.Array:
		for i := range value.Elements {
			hideSecrets(&value.Elements[i], name)
			name = "" // of the next: a flag says what the word after it is
			if word, ok := scalarText(&value.Elements[i]); ok && strings.HasPrefix(word, "-") {
				name = word
			}
		}
	case hujson.Literal:
		word, ok := scalarText(v)
		if !ok || value.Kind() != '"' || strings.Contains(word, "${") {
			return
		}
		if flag, secret, joined := strings.Cut(word, "="); joined && (strings.HasPrefix(flag, "-") || variableName.MatchString(flag)) && looksSecret(flag, secret) {
			v.Value = hujson.String(flag + "=***")
		} else if !strings.HasPrefix(word, "-") && looksSecret(name, word) || name == "-p" && passwordLike(word) {
			v.Value = hujson.String("***")
		}
	}
}

// quoted are words in quotes, with commas between them.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = fmt.Sprintf("%q", word)
	}
	return strings.Join(out, ", ")
}
