package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
)

// holdsFor evaluates a condition on the arguments given, in the phase that knows most.
func holdsFor(t *testing.T, condition, args string) {
	t.Helper()
	e, issues := compileText(condition, ^varSet(0))
	if e == nil {
		t.Fatalf("%s: %v", condition, issues)
	}
	c := newCall(args)
	c.Meta = []byte(`{"progressToken":7}`)
	v, err := e.eval(c)
	if err != nil || v != types.True {
		t.Errorf("%s: %v, %v", condition, v, err)
	}
}

const everyKind = ` { "s" : "tab\t\u00e9\ud83d\ude00\/" , "i":9007199254740993,"min":-9223372036854775808,"u":18446744073709551615,
	"d":1.5,"e":1e3,"one":1.0,"zero":-0,"t":true,"f":false,"nil":null,"list":[1,"two",[3],{"k":4}],"o":{"a":{"b":"c"},"e\u0041":1},
	"empty":{},"none":[],"dup":1,"dup":2,"huge":123456789012345678901234567890,"over":1e999 } `

func TestValuesOfTheCall(t *testing.T) {
	for _, condition := range []string{
		`args.s == "tab\té😀/"`,
		`args.i == 9007199254740993 && type(args.i) == int && string(args.i) == "9007199254740993"`,
		`args.i + 1 == 9007199254740994`,
		`args.min == -9223372036854775808`,
		`args.u == 18446744073709551615u && type(args.u) == uint`,
		`args.d == 1.5 && type(args.d) == double`,
		`args.e == 1000.0 && type(args.e) == double`,
		`args.one == 1 && type(args.one) == double`,
		`args.zero == 0`,
		`args.t && !args.f && args.nil == null`,
		`args.list.size() == 4 && args.list[1] == "two" && args.list[2][0] == 3 && args.list[3].k == 4`,
		`"two" in args.list && !(5 in args.list)`,
		`args.list.exists(x, x == "two")`,
		`args.list + [5] == [1, "two", [3], {"k": 4}, 5]`,
		`args.list == [1, "two", [3], {"k": 4}] && [1, "two", [3], {"k": 4}] == args.list`,
		`args.o == {"a": {"b": "c"}, "eA": 1} && {"a": {"b": "c"}, "eA": 1} == args.o`,
		`args.o != {"a": {"b": "d"}, "eA": 1} && args.o != {"a": 1} && args.o != args.list`,
		`args.o.a.b == "c" && args["o"]["a"]["b"] == "c" && args.o.eA == 1`,
		`has(args.o.a) && !has(args.o.z) && "a" in args.o && !("z" in args.o)`,
		`args.?o.?a.?b.orValue("x") == "c" && args.?o.?z.?b.orValue("x") == "x"`,
		`args.o.map(k, k).sort() == ["a", "eA"] && args.o.all(k, v, k != "" && v != null)`,
		`args.empty == {} && args.none == [] && size(args.empty) == 0 && size(args.none) == 0`,
		`args.dup == 2 && args.map(k, k).filter(k, k == "dup").size() == 1`,
		`string(args.huge) == "123456789012345678901234567890" && args.huge == args.huge && args.huge != 1`,
		`hash(args.huge) == hash({"k": args.huge}.k) && hash([args.huge]) != hash([1])`,
		`type(args) == map && type(args.list) == list`,
		`dyn(tool).name == "t" && dyn(client).name == "claude" && has(tool.name)`,
		`tool.effects == "" && tool.annotated && tool.readOnly && !tool.destructive && !tool.idempotent && !tool.openWorld && tool.title == ""`,
		`client.version == "9" && client.protocol == "2025-06-18" && server.title == "A Server" && server.version == "1.2" && server.protocol == "2025-11-25"`,
		`meta.progressToken == 7`,
		`now == timestamp("2030-01-02T03:04:05Z") && now.getHours() == 3`,
		`error.kind == "" && error.code == 0 && error.data == null && error.retry_after == duration("0s") && !error.transient`,
		`result == null && attempt == 0 && elapsed == duration("0s")`,
		`[1, 2].all(error, error > 0) && cel.bind(result, 5, result == 5)`, // a name that is bound hides the variable
	} {
		holdsFor(t, condition, everyKind)
	}
	holdsFor(t, `args == {} && size(args) == 0 && !has(args.x)`, "")
}

func TestValuesThatCannotBeHeldFailOnlyTheirReader(t *testing.T) {
	holdsFor(t, `has(args.huge) && has(args.over) && args.d == 1.5`, everyKind)
	for condition, want := range map[string]string{
		`args.huge > 1`:          "the number 123456789012345678901234567890 does not fit into 64 bits",
		`args.over >= 1.5`:       "the number 1e999 does not fit into 64 bits",
		`int(args.huge) == 1`:    "no such overload: int(number)",
		`args.huge + 1 == 2`:     "no such overload: _+_",
		`args.z`:                 "no such key: z",
		`args.o.z.y`:             "no such key: z",
		`args.list[9]`:           "index out of bounds: 9",
		`args.list.k`:            "unsupported index type 'string' in list",
		`args.d.k`:               "no such key: k",
		`args.list["x"] == 1`:    "unsupported index type 'string' in list",
		`dyn(args.s + 1) == "x"`: "no such overload",
		`dyn(tool).nothing == 1`: `no such field "nothing"`,
	} {
		e, issues := compileText(condition, ^varSet(0))
		if e == nil {
			t.Fatalf("%s: %v", condition, issues)
		}
		if _, err := e.eval(newCall(everyKind)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", condition, err, want)
		}
	}
}

func TestObjectsOfManyMembers(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"first":0,"m1":"overwritten","\u006d2":"also"`)
	for i := range 100 {
		fmt.Fprintf(&b, `,"m%d":%d,"\u006e%d":%d`, i, i, i, -i)
	}
	b.WriteString(`,"first":1}`)
	for _, condition := range []string{
		`size(args) == 201 && args.first == 1`,
		`args.m0 == 0 && args.m1 == 1 && args.m2 == 2 && args.m99 == 99 && args.n99 == -99`,
		`!has(args.m100) && "n0" in args && !("x" in args)`,
		`args.filter(k, k.startsWith("m")).size() == 100`,
		`hash(args) == hash(omit(args, []))`,
	} {
		holdsFor(t, condition, b.String())
	}
}

func TestFunctions(t *testing.T) {
	const args = `{"a":1,"b":{"y":[1,2.0],"x":"é"},"c":"/srv/data/x.txt","result":{"content":[
		{"type":"text","text":"one"},{"type":"image","data":"…"},{"type":"text","text":"two"},{"type":"text"},7],"isError":true}}`
	for _, condition := range []string{
		`hash(args.b) == hash({"x": "é", "y": [1, 2]}) && hash(args.b).size() == 64`,
		`hash("a") == "ac8d8342bbb2362d13f0a559a3621bb407011368895164b628a54f7fc33fc43c"`, // SHA-256 of "a" with its quotes
		`hash(1) != hash("1") && hash(null) != hash("") && hash([]) != hash({})`,
		`glob(args.c, "/srv/*") && glob(args.c, "*.txt") && glob(args.c, "/srv/????/x.*") && !glob(args.c, "/srv")`,
		`omit(args, ["b", "c", "result", "nothing"]) == {"a": 1}`,
		`pick(args, ["a", "nothing"]) == {"a": 1} && pick(args, []) == {}`,
		`pick(args.b, ["x"]).x == "é"`,
		`text(args.result) == "one\ntwo" && text(null) == "" && text({}) == ""`,
		// the libraries
		`"A b".lowerAscii().replace(" ", "-") == "a-b" && "a,b".split(",") == ["a", "b"] && ["a", "b"].join("+") == "a+b"`,
		`[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct() == [1] && lists.range(3) == [0, 1, 2]`,
		`sets.contains([1, 2], [2]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 2], [2, 1])`,
		`math.greatest(1, args.a, 3) == 3 && math.least([2, 1]) == 1`,
		`json.encode(args.b) == "{\"x\":\"é\",\"y\":[1,2]}" && json.encode([args.a]) == "[1]" && json.encode(client).contains("claude")`,
		`base64.encode(b"hi") == "aGk=" && base64.decode("aGk=") == b"hi"`,
		`cel.bind(x, args.a, x + x) == 2`,
		`"ab12".matches("^[a-z]+[0-9]{2}$") && args.c.matches("data") && !args.c.matches("DATA") && args.c.matches("(?i)DATA")`,
		`regex.extract("id=42", "id=([0-9]+)").orValue("") == "42" && regex.replace("a1b2", "[0-9]", "") == "ab" && regex.extractAll("a1b2", "[0-9]") == ["1", "2"]`,
		`{"a": 1}.transformMap(k, v, v + 1) == {"a": 2} && [1, 2].transformList(i, v, v * i) == [0, 2]`,
		`optional.of(args.a).hasValue() && !args.?z.hasValue()`,
		`"%s has %d".format(["x", args.a]) == "x has 1"`,
	} {
		holdsFor(t, condition, args)
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a", "a", true}, {"a", "A", false},
		{"get_*", "get_issue", true}, {"get_*", "get_", true}, {"get_*", "forget_it", false}, {"*_issue", "get_issue", true},
		{"*et*ss*", "get_issue", true}, {"*et*ss*x", "get_issue", false}, {"a*b*c", "abbbc", true}, {"a*b*c", "acb", false},
		{"?", "a", true}, {"?", "", false}, {"?", "é", true}, {"??", "é", false}, {"*?", "日本", true}, {"a?c", "abc", true},
		{"a.b", "aXb", false}, {"[a]", "a", false}, {"[a]", "[a]", true}, {"**", "x", true}, {"*a", "aaaa", true},
	} {
		if got := Match(tc.pattern, tc.name); got != tc.want {
			t.Errorf("Match(%q, %q) = %v", tc.pattern, tc.name, got)
		}
	}
}
