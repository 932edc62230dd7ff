package compose

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNamesComeBackToTheirServers(t *testing.T) {
	n, err := newNames([]string{"git hub", "b", "c.d"}, "__")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		server int
		name   string
		want   string // "" = cut
	}{
		{0, "read", "git_hub__read"},
		{1, "read", "b__read"},
		{1, "", "b__"},
		{1, "b__read", "b__b__read"},
		{2, "read", "c_d__read"},
		{1, strings.Repeat("x", maxName-3), "b__" + strings.Repeat("x", maxName-3)},
		{1, strings.Repeat("x", maxName-2), ""},
		{1, long, ""},
		{1, long + "y", ""},
		{0, strings.Repeat("é", 40), ""},
	} {
		composed, cut := n.compose(c.server, c.name)
		if c.want != "" && composed != c.want || cut != (c.want == "") || len(composed) > maxName || !utf8.ValidString(composed) {
			t.Errorf("%q of %d is %q, cut: %v", c.name, c.server, composed, cut)
		}
		if o, ok := n.resolve(composed); !ok || o != (own{c.server, c.name}) {
			t.Errorf("%q comes back as %+v, %v", composed, o, ok)
		}
	}
	if _, again := n.compose(1, long); again {
		t.Error("a name that was cut before counts as new")
	}
	for _, unknown := range []string{"read", "", "b", "b_", "c.d__read"} {
		if o, ok := n.resolve(unknown); ok {
			t.Errorf("%q is taken for %+v", unknown, o)
		}
	}
}

func TestServersThatCouldBeTakenForEachOtherAreRefused(t *testing.T) {
	for _, c := range []struct {
		separator string
		names     []string
	}{
		{"__", []string{"a", "a__b"}},
		{"__", []string{"a__b", "a"}},
		{"__", []string{"a b", "a_b"}},
		{"_", []string{"a", "a_b"}},
	} {
		if _, err := newNames(c.names, c.separator); err == nil {
			t.Errorf("%q with %q: no error", c.names, c.separator)
		}
	}
	if _, err := newNames([]string{"a", "ab", "a_b"}, "__"); err != nil {
		t.Error(err)
	}
}

func TestANameThatWasCutIsSeenToBeOne(t *testing.T) {
	servers := []string{"alpha", strings.Repeat("wide", 20), "b"}
	n, _ := newNames(servers, "__")
	for i := range servers {
		for _, name := range []string{strings.Repeat("x", 80), strings.Repeat("é", 40), strings.Repeat("日本", 30)} {
			composed, _ := n.compose(i, name)
			fresh, _ := newNames(servers, "__")
			if by := fresh.cutBy(composed); !slices.Equal(by, []int{i}) {
				t.Errorf("%q may be of %v, want %d", composed, by, i)
			}
			if n.cutBy(composed) != nil {
				t.Errorf("%q is known", composed)
			}
		}
	}
	for _, whole := range []string{"alpha__read", "", "alpha__" + strings.Repeat("x", 57), "alpha__" + strings.Repeat("x", 200)} {
		if by := n.cutBy(whole); by != nil {
			t.Errorf("%q counts as cut, by %v", whole, by)
		}
	}
}
