package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

func newInit(u *ui) *cobra.Command {
	var config, from string
	var clients []string
	var dryRun, force bool
	cmd := &cobra.Command{
		Use:   "init [--config FILE] [--from FILE] [flags]",
		Short: "write a config for the MCP servers that you already have",
		Long: `Looks for the MCP servers that your clients start and writes a config that
holds them all, with comments on what can be set. Nothing else is changed:
that is for mcp-retry install.

It looks into the files of Claude Code (~/.claude.json with its projects, and
.mcp.json), Claude Desktop, Cursor and VS Code, of the user and of the project
in the working directory. Secrets are not copied: they become ${VAR}, and it
says which variables that are. Servers over HTTP are named and left out.

An existing file is not overwritten without --force.

Exit status: 0 if the config was written, even if a file that could not be read
was passed over, 1 if there is no server, 2 if no file can be read or the config
exists.`,
		Example: `  mcp-retry init
  mcp-retry init --dry-run
  mcp-retry init --config ~/mcp-retry.yaml --client cursor
  mcp-retry init --from ~/backup/claude_desktop_config.json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := thisMachine()
			if err != nil {
				return err
			}
			if from != "" && len(clients) > 0 {
				return usagef("both --from and --client").hint("--from names one file, --client picks among those that are known")
			}
			if config == "-" {
				return usagef("--config names the file to write, and %q is none", config).hint("--dry-run prints the config in place of writing it")
			}
			switch ext := strings.ToLower(filepath.Ext(config)); ext {
			case ".json", ".cue":
				return usagef("init writes YAML, and %q is to hold %s", config, strings.ToUpper(ext[1:])).hint("name a file that ends in .yaml")
			}
			inTheWay := config
			if other, err := findConfig(""); err == nil && !cmd.Flags().Changed("config") {
				inTheWay = other // by any of the names that are looked for
			}
			if _, err := os.Lstat(inTheWay); err == nil && !force && !dryRun {
				return usagef("%q exists", inTheWay).hint("--force writes %q all the same, --dry-run shows what would be written", config)
			}
			found, err := u.collectServers(m, from, clients)
			if err != nil {
				return err
			}
			return u.writeConfig(found, config, dryRun, force)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&config, "config", "c", defaultConfigs[0], "`FILE` to write")
	flags.Var(fileFlag{&from}, "from", "take the servers from this `FILE` of a client alone")
	flags.StringSliceVar(&clients, "client", nil, "`NAME` of a client to look at, in place of all; may be repeated")
	flags.BoolVar(&dryRun, "dry-run", false, "print the config in place of writing it")
	flags.BoolVar(&force, "force", false, "overwrite the file if it exists")
	return cmd
}

// gathered is a server that goes into the config.
type gathered struct {
	name  string
	from  []string // where it was found
	start launch
}

// gathering is what was found in the files of clients.
type gathering struct {
	files   []string // that have servers
	servers []gathered
	secrets map[string]string // what the variables stand for that replace secrets among arguments
}

// collectServers finds the servers of a file, or of all files of these clients. What is left out is said on stderr.
func (u *ui) collectServers(m machine, from string, clients []string) (*gathering, error) {
	configs, _, err := u.readClients(m, from, clients)
	if err != nil {
		return nil, err
	}
	g := &gathering{}
	left := 0
	for _, c := range configs {
		if len(c.entries) > 0 {
			g.files = append(g.files, c.path)
		}
		for _, e := range c.entries {
			switch {
			case e.fault != "":
				u.warnf("%q in %s %s: left out", e.name, e.where(c.clientFile), e.fault)
				left++
			case e.behindUs():
				u.warnf("%q in %s is behind mcp-retry already: left out", e.name, e.where(c.clientFile))
				left++
			default:
				if words := e.unexpanded(); len(words) > 0 {
					u.warnf("%q in %s holds %s, which %s does not replace: the server goes on getting it as it is", e.name, e.where(c.clientFile), quoted(words), e.client)
				}
				g.add(e, c.clientFile, e.launch(m))
			}
		}
	}
	switch {
	case len(g.servers) > 0:
		return g, nil
	case left > 0:
		return nil, &failure{status: exitFailed, message: "there is no server that could be wrapped"}
	case from != "":
		return nil, &failure{status: exitFailed, message: fmt.Sprintf("no MCP server in %q", from),
			hints: []string{"they are looked for under mcpServers and servers"}}
	}
	nothing := &failure{status: exitFailed, message: "no MCP server was found in the files of " + quoted(orAll(clients))}
	return nil, nothing.hint("name a file with --from FILE, or wrap a server without a config: mcp-retry wrap -- COMMAND")
}

func orAll(clients []string) []string {
	if len(clients) == 0 {
		return knownClients
	}
	return clients
}

// readClients reads the file from, or all files of these clients that there are. Of those, one that cannot be read is named
// and passed over, unless there is no other; all is false then.
func (u *ui) readClients(m machine, from string, clients []string) (found []*clientConfig, all bool, err error) {
	if from != "" {
		path, err := filepath.Abs(from)
		if err != nil {
			return nil, false, usagef("cannot read %q: %v", from, err)
		}
		c, err := readClientConfig(clientFile{path: path, project: projectOf(path)})
		if err != nil {
			return nil, false, usagef("%v", strings.Replace(err.Error(), fmt.Sprintf("%q", path), fmt.Sprintf("%q", from), 1)).
				hint("--from names a JSON file in which a client keeps its servers")
		}
		for _, what := range c.twice {
			u.warnf("%s", what)
		}
		return []*clientConfig{c}, true, nil
	}
	files, err := ofClients(m.clientFiles(), clients)
	if err != nil {
		return nil, false, err
	}
	var configs []*clientConfig
	var broken []error
	for _, f := range files {
		switch c, err := readClientConfig(f); {
		case err == nil:
			configs = append(configs, c)
			for _, what := range c.twice {
				u.warnf("%s", what)
			}
		case !errors.Is(err, fs.ErrNotExist):
			broken = append(broken, err)
		}
	}
	if len(configs) == 0 && len(broken) > 0 {
		return nil, false, usagef("%v", errors.Join(broken...)).hint("correct it, or name another file")
	}
	for _, err := range broken {
		u.warnf("%v: passed over", err)
	}
	return configs, len(broken) == 0, nil
}

// projectOf is the project that a file belongs to by its place, or "".
func projectOf(path string) string {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	switch {
	case name == ".mcp.json":
		return dir
	case name == "mcp.json" && (filepath.Base(dir) == ".vscode" || filepath.Base(dir) == ".cursor"):
		return filepath.Dir(dir)
	}
	return ""
}

// add takes in a server. The same one in several clients is one; of several under one name the later get a name of their own.
func (g *gathering) add(e *clientEntry, f clientFile, l launch) {
	where := e.where(f)
	l = g.apart(l)
	names := e.names(f)
	for n := 2; ; n++ {
		for _, name := range names {
			i := slices.IndexFunc(g.servers, func(s gathered) bool { return s.name == name })
			if i < 0 {
				g.servers = append(g.servers, gathered{name, []string{where}, l})
				maps.Copy(g.secrets, l.secrets)
				return
			}
			if g.servers[i].start.same(l) {
				if !slices.Contains(g.servers[i].from, where) {
					g.servers[i].from = append(g.servers[i].from, where)
				}
				return
			}
		}
		names = []string{fmt.Sprintf("%s-%d", e.name, n)}
	}
}

// names are what the server of an entry is called in a config, in order: a later one where another server has the former.
func (e *clientEntry) names(f clientFile) []string {
	names := []string{e.name}
	if e.project != "" {
		names = append(names, e.name+"-"+filepath.Base(e.project))
	}
	if f.client != "" {
		names = append(names, e.name+"-"+f.client)
	}
	return names
}

// apart is a launch whose variables for secrets stand for nothing else in another one.
func (g *gathering) apart(l launch) launch {
	if g.secrets == nil {
		g.secrets = map[string]string{}
	}
	names, taken := map[string]string{}, maps.Clone(g.secrets)
	for _, name := range slices.Sorted(maps.Keys(l.secrets)) {
		value := l.secrets[name]
		names[name] = freeName(name, func(name string) bool {
			known, ok := taken[name]
			return !ok || known == value
		})
		taken[names[name]] = value
	}
	return l.renamed(names)
}

// writeConfig writes the config, or prints it, and says what is left to do.
func (u *ui) writeConfig(g *gathering, path string, dryRun, force bool) error {
	text, err := u.fitConfig(g)
	if err != nil {
		return err
	}
	if dryRun {
		if _, err := u.stdout.Write(text); err != nil {
			return err
		}
		u.nextSteps(g, path)
		return nil
	}
	if err := writeNew(path, text, force); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usagef("%q exists", path).hint("--force overwrites it")
		}
		return usagef("cannot write %q: %v", path, pathCause(err))
	}
	names := make([]string, len(g.servers))
	for i, s := range g.servers {
		names[i] = s.name
	}
	fmt.Fprintf(u.stdout, "%s: %s\n", path, strings.Join(names, ", "))
	u.nextSteps(g, path)
	return nil
}

// fitConfig is the text of a config that can be used as it is: a server that no config can hold is said and left out, for a
// mistake of ours must not be left to the user to find.
func (u *ui) fitConfig(g *gathering) ([]byte, error) {
	fit := g.servers[:0:0]
	for _, s := range g.servers {
		alone := gathering{servers: []gathered{s}}
		if fault := firstError(alone.yaml()); fault != "" {
			u.warnf("%q in %s cannot be put into a config: %s: left out", s.name, s.from[0], fault)
			continue
		}
		fit = append(fit, s)
	}
	if g.servers = fit; len(fit) == 0 {
		return nil, &failure{status: exitFailed, message: "there is no server that could be wrapped"}
	}
	text := g.yaml()
	if fault := firstError(text); fault != "" {
		return nil, fmt.Errorf("these servers cannot be put into one config: %s", fault)
	}
	return text, nil
}

// firstError is what is wrong with a config of ours, or "".
func firstError(text []byte) string {
	_, findings := schema.Load("mcp-retry.yaml", text, standIn(lookupEnv))
	for _, f := range findings {
		if f.Level == schema.Error {
			return f.Message
		}
	}
	return ""
}

// nextSteps says what the user has to do.
func (u *ui) nextSteps(g *gathering, path string) {
	var inEnv, toSet []string
	for _, s := range g.servers {
		inEnv = append(inEnv, s.start.variables(secretInEnv, givenByClient)...)
		toSet = append(toSet, s.start.variables(secretInArgs, placeholder)...)
	}
	say := func(names []string, what string) {
		slices.Sort(names)
		if names = slices.Compact(names); len(names) > 0 {
			u.warnf("%s: %s", what, strings.Join(names, ", "))
		}
	}
	say(inEnv, "variables to set, except where a client sets them in its own entry")
	say(toSet, "variables to set, in the env of the client's entry or of the client itself")
	config := ""
	if path != defaultConfigs[0] {
		config = " --config " + path
	}
	u.warnf("hint: mcp-retry check%s shows whether they start, mcp-retry install%s points the clients at them", config, config)
}
