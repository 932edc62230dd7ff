package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// shells are those for which completion can be written.
var shells = []string{"bash", "fish", "powershell", "zsh"}

func newCompletion(u *ui) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "write the completion script of a shell",
		Long: `Prints a script for bash, fish, powershell or zsh that completes commands,
flags, and the names of servers, which it reads from the config.`,
		Example: `  source <(mcp-retry completion bash)
  mcp-retry completion zsh > "${fpath[1]}/_mcp-retry"
  mcp-retry completion fish > ~/.config/fish/completions/mcp-retry.fish
  mcp-retry completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("for which shell?").hint("there is %s", strings.Join(shells, ", "))
			}
			return noArguments(cmd, args[1:])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return bashCompletion(u.stdout, root)
			case "fish":
				return root.GenFishCompletion(u.stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(u.stdout)
			case "zsh":
				return root.GenZshCompletion(u.stdout)
			}
			return usagef("unknown shell %q", args[0]).hint("there is %s", strings.Join(shells, ", "))
		},
	}
}

// bashCompletion writes the script of bash. That of cobra calls functions of the bash-completion package, which many do not have:
// with them, completion would end in "command not found".
func bashCompletion(w io.Writer, root *cobra.Command) error {
	var script strings.Builder
	if err := root.GenBashCompletionV2(&script, true); err != nil {
		return err
	}
	_, err := io.WriteString(w, strings.ReplaceAll(script.String(), "_filedir", "__mcp-retry_filedir")+bashFunctions)
	return err
}

// bashFunctions are what stands for those of bash-completion where that is not installed. The first takes the place of one in
// cobra's script.
const bashFunctions = `
# The words of the line, put together again where bash has split them at = and the like.
__mcp-retry_init_completion()
{
    local i word rest=${COMP_LINE}
    COMPREPLY=()
    words=()
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        if [[ ${i} -gt 0 && ${rest} != [[:blank:]]* ]]; then
            words[${#words[@]}-1]+=${word}
        else
            words+=("${word}")
        fi
        rest=${rest#*"${word}"}
        if [[ ${i} -eq ${COMP_CWORD} ]]; then
            cword=$((${#words[@]} - 1))
        fi
    done
    cur=${words[cword]}
    prev=${words[cword > 0 ? cword - 1 : 0]}
}

# Files, of certain kinds if that can be had.
__mcp-retry_filedir()
{
    if declare -F _filedir >/dev/null; then
        _filedir "$@"
    else
        compopt -o default
    fi
}
`

// completeFlags has the values of flags completed, of all commands that have such a flag.
func completeFlags(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		for flag, complete := range map[string]cobra.CompletionFunc{
			"config": cobra.FixedCompletions([]string{"yaml", "yml", "json", "cue"}, cobra.ShellCompDirectiveFilterFileExt),
			"server": completeServers,
			"client": cobra.FixedCompletions(knownClients, cobra.ShellCompDirectiveNoFileComp),
		} {
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, complete) // it fails only for a flag that there is not
			}
		}
	}
}

// completeServers completes the name of a server of the config.
func completeServers(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	config, err := cmd.Flags().GetString("config")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	path, err := findConfig(config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	l, err := loadConfig(path)
	if err != nil || l.config == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, s := range l.config.Servers {
		if strings.HasPrefix(s.Name, begun) {
			names = append(names, s.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
