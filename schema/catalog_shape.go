package schema

// shapeEntries are the findings about what a file may hold: text, keys, values, and how a server is started.
var shapeEntries = []Entry{
	{
		Number: 1, ID: "unknown-key", Level: Error,
		Title: "a key that there is not",
		Why: "A key with a typing error would otherwise be ignored without a word, and the setting that it was meant for would keep its " +
			"default: retries that never happen, a deny list that denies nothing.",
		Fix:  "Write the key as the schema has it (mcp-retry schema prints it), or move it to where it belongs. Keys at the top of the file that begin with x- are free.",
		Bad:  "retry:\n  max_retires: 2",
		Good: "retry:\n  max_retries: 2",
	},
	{
		Number: 2, ID: "repeated-key", Level: Error,
		Title: "a key that is given twice",
		Why:   "Of two equal keys in a map, most readers keep the last and some the first, without a word. Which of them was meant only the author knows.",
		Fix:   "Keep one of the two.",
		Bad:   "call_timeout: 10s\nretry: {max_retries: 2}\ncall_timeout: 20s",
		Good:  "call_timeout: 20s\nretry: {max_retries: 2}",
	},
	{
		Number: 3, ID: "bad-value", Level: Error,
		Title: "a value that its key does not take",
		Why: "The value has the wrong type, is out of bounds, or is not one of the words that may stand there. A duration is a number of " +
			"seconds or text with a unit; \"30\" in quotes could mean either and is refused.",
		Fix:  "Write a value of the kind that the message names.",
		Bad:  "call_timeout: \"30\"\nretry: {max_retries: 99}",
		Good: "call_timeout: 30s\nretry: {max_retries: 2}",
	},
	{
		Number: 4, ID: "missing-key", Level: Error,
		Title: "a key that has to be there",
		Why:   "Without it the entry means nothing: a server needs a command, a rate limit needs calls and per, a file needs servers.",
		Fix:   "Add the key.",
		Bad:   "rate_limit: {calls: 60}",
		Good:  "rate_limit: {calls: 60, per: 1m}",
	},
	{
		Number: 8, ID: "syntax", Level: Error,
		Title: "text that is not YAML, JSON or CUE",
		Why: "The file, or a value in it, could not be read at all. Most often an expression was not quoted, so that YAML took a part of it " +
			"for its own: \": \" begins a map, \" #\" a comment, and a leading ! a tag.",
		Fix:  "Put the value in single quotes, or on the next line after a |.",
		Bad:  "policy:\n  - when: !tool.annotated\n    retry: false",
		Good: "policy:\n  - when: '!tool.annotated'\n    retry: false",
	},
	{
		Number: 13, ID: "timeout-order", Level: Error,
		Title: "a call_timeout that total_timeout leaves no room for",
		Why:   "total_timeout bounds the whole call, its attempts and waits included. If it is not longer than call_timeout, the first attempt can use it up: no retry ever happens.",
		Fix:   "Raise total_timeout above call_timeout times the attempts, or lower call_timeout.",
		Bad:   "call_timeout: 60s\ntotal_timeout: 30s",
		Good:  "call_timeout: 10s\ntotal_timeout: 50s",
	},
	{
		Number: 38, ID: "empty-rule", Level: Warning,
		Title: "a rule that decides nothing",
		Why:   "A rule takes part in a decision only if it states it. One with just a name and a condition does nothing.",
		Fix:   "State a decision in it, or delete it.",
		Bad:   "policy:\n  - name: reads\n    when: tool.effects == \"none\"",
		Good:  "policy:\n  - name: reads\n    when: tool.effects == \"none\"\n    cache_ttl: 30s",
	},
	{
		Number: 40, ID: "secret", Level: Warning,
		Title: "a secret in plain text",
		Why: "A config file is committed, copied and shown to others, and with it whatever stands in it. The value looks like a token, a " +
			"private key, the password of a URL, or what a key such as PASSWORD or API_KEY, a flag such as --token or a header such as " +
			"Authorization is given. It is never printed in a finding.",
		Fix:  "Put the secret in the environment and name the variable here; then replace the secret, for the old one has been in a file.",
		Bad:  "env:\n  GITHUB_TOKEN: ghp_16C7e42F292c6912E7710c838347Ae178B4a",
		Good: "env:\n  GITHUB_TOKEN: ${GITHUB_TOKEN:-}",
	},
	{
		Number: 41, ID: "repeated-name", Level: Error,
		Title: "two rules of one name",
		Why:   "Logs, errors and tests name the rule that decided. With two of one name they would not say which.",
		Fix:   "Give each rule a name of its own.",
		Bad:   "policy:\n  - {name: reads, when: tool.effects == \"none\", cache_ttl: 30s}\n  - {name: reads, call_timeout: 10s}",
		Good:  "policy:\n  - {name: reads, when: tool.effects == \"none\", cache_ttl: 30s}\n  - {name: the rest, call_timeout: 10s}",
	},
	{
		Number: 42, ID: "unset-variable", Level: Warning,
		Title: "a variable of the environment that is not set",
		Why: "run and check refuse to start the server: it would get an empty text or the literal ${NAME}, and fail later in a way that " +
			"does not name the cause. For validate it is a warning, because a CI job has no secrets.",
		Fix:     "Set the variable, or give it a default: ${NAME:-default}.",
		Bad:     "env:\n  REGION: ${SURELY_NOT_SET}",
		Good:    "env:\n  REGION: ${SURELY_NOT_SET:-eu}",
		Depends: OnComputer,
	},
	{
		Number: 43, ID: "editor-placeholder", Level: Error,
		Title: "a placeholder that only an editor can fill in",
		Why:   "${input:key}, ${env:NAME} and ${workspaceFolder} are filled in by the editor whose config they come from. Here they would reach the server as they are.",
		Fix:   "Write the value itself, or a variable of the environment: ${NAME}.",
		Bad:   "env:\n  ROOT: ${workspaceFolder}",
		Good:  "env:\n  ROOT: ${ROOT:-.}",
	},
	{
		Number: 44, ID: "mixed-spellings", Level: Error,
		Title: "keys of mcp-shield and of mcp-retry in one file",
		Why:   "mcp-shield's files load as they are, with its names and its defaults (two retries, from 1 s). In a file of both spellings it would not be clear whose defaults hold.",
		Fix:   "Use mcp-retry's names.",
		Bad:   "timeout: 30\nretry: {max_retries: 2}",
		Good:  "call_timeout: 30\nretry: {max_retries: 2}",
	},
	{
		Number: 45, ID: "unsupported", Level: Error,
		Title: "a server over HTTP",
		Why:   "mcp-retry starts servers that speak MCP over stdin and stdout. One with a url cannot be used yet.",
		Fix:   "Give it a command that speaks MCP over stdio.",
		Bad:   "servers:\n  shop:\n    url: https://shop.example/mcp",
		Good:  "servers:\n  shop:\n    command: shop-server",
	},
	{
		Number: 46, ID: "command-words", Level: Warning,
		Title: "a command that seems to hold its arguments",
		Why:   "No shell is involved: command is the name of one program. A name with blanks in it, where no such file exists, is nearly always a command line.",
		Fix:   "Put the first word under command and the rest under args.",
		Bad:   "servers:\n  shop:\n    command: npx -y shop-server",
		Good:  "servers:\n  shop:\n    command: npx\n    args: [-y, shop-server]", Depends: OnComputer,
	},
	{
		Number: 47, ID: "milliseconds", Level: Warning,
		Title: "a timeout of more than an hour",
		Why:   "A number is seconds. 30000 is more than eight hours, and most likely was meant as milliseconds.",
		Fix:   "Write the unit.",
		Bad:   "call_timeout: 30000",
		Good:  "call_timeout: 30000ms",
	},
	{
		Number: 49, ID: "above-bound", Level: Warning,
		Title: "a duration above its bound",
		Why: "max_delay bounds every wait before a retry, the first included, and max_call_time bounds a call whatever its call_timeout. total_timeout bounds the " +
			"wait for a rate limit too, and the call_timeout of a rule. A duration in an expression has the bounds that one outside has. The longer duration never comes about.",
		Fix:  "Lower the duration, or raise its bound.",
		Bad:  "retry: {base_delay: 30s, max_delay: 10s}\ncall_timeout: 2m\nmax_call_time: 1m",
		Good: "retry: {base_delay: 1s, max_delay: 10s}\ncall_timeout: 1m\nmax_call_time: 2m",
	},
	{
		Number: 54, ID: "no-shell", Level: Warning,
		Title: "a command in one string that needs a shell",
		Why: "A command in mcp-shield's spelling is cut into words as a shell does, and no shell runs it: pipes, redirections, $NAME and ~ reach the program " +
			"as they are, and the backslashes of a Windows path are gone.",
		Fix:  "Write ${NAME} for a variable, quote what is meant as it is, or start a shell: sh -c '…'.",
		Bad:  "servers:\n  shop: {command: \"shop-server $HOME/data > log\", timeout: 30}",
		Good: "servers:\n  shop: {command: \"shop-server ${HOME}/data\", timeout: 30}",
	},
	{
		Number: 55, ID: "composed-names", Level: Warning,
		Title: "servers whose tools could have one name",
		Why: "run without --server puts all servers behind one endpoint, where a tool is called SERVER__TOOL. Tool b__c of server a and tool c of server a__b " +
			"would both be a__b__c, so run refuses to compose the two. Each alone, with --server, can be used.",
		Fix:  "Rename one of the servers, or state another separator.",
		Bad:  "servers:\n  shop: {command: shop-server}\n  shop__eu: {command: shop-server}",
		Good: "servers:\n  shop: {command: shop-server}\n  shop_eu: {command: shop-server}",
	},
}

// commentEntries are the findings about the comments that silence findings.
var commentEntries = []Entry{
	{
		Number: 50, ID: "ignore-reason", Level: Warning,
		Title: "an ignore comment without a reason",
		Why:   "Whoever meets the comment later has to know why the finding does not matter here, and when it would.",
		Fix:   "Write the reason after the rule.",
		Bad:   "# mcp-retry ignore: MR047\ncall_timeout: 7200",
		Good:  "# mcp-retry ignore: MR047 builds take an hour\ncall_timeout: 7200",
	},
	{
		Number: 51, ID: "ignore-unknown", Level: Warning,
		Title: "an ignore comment for a rule that there is not",
		Why:   "It silences nothing.",
		Fix:   "Name a rule by its number or ID: mcp-retry explain --rules lists them.",
		Bad:   "# mcp-retry ignore: millisecond builds take an hour\ncall_timeout: 60",
		Good:  "call_timeout: 60",
	},
	{
		Number: 52, ID: "ignore-unused", Level: Warning,
		Title: "an ignore comment that silences nothing",
		Why:   "What it was for has been mended, the comment has moved, or it is not written as one that silences. If it stayed, it would hide the next mistake, or seem to.",
		Fix:   "Delete it, or put it on the line of the finding or above it, as mcp-retry ignore: RULE REASON.",
		Bad:   "# mcp-retry ignore: MR047 builds take an hour\ncall_timeout: 60",
		Good:  "call_timeout: 60",
	},
	{
		Number: 53, ID: "ignore-error", Level: Warning,
		Title: "an ignore comment for an error",
		Why:   "run refuses a config with an error, whatever a comment says; so validate does too.",
		Fix:   "Mend the error, and delete the comment.",
		Bad:   "call_timeout: 60s\ntotal_timeout: 30s # mcp-retry ignore: MR013 it works for me",
		Good:  "call_timeout: 10s\ntotal_timeout: 50s",
	},
}
