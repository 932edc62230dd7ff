package schema

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// idWord is what an ID looks like.
var idWord = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// source is what the files of a package say: the IDs in places where a finding gets one, and all texts.
func idsInSource(t *testing.T, dir string) (ids, texts map[string]string) {
	t.Helper()
	ids, texts = map[string]string{}, map[string]string{}
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no files in", dir)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(filepath.Base(name), "catalog") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		text := func(e ast.Expr) string {
			if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				s, _ := strconv.Unquote(lit.Value)
				return s
			}
			return ""
		}
		is := func(e ast.Expr) {
			if s := text(e); idWord.MatchString(s) {
				ids[s] = fset.Position(e.Pos()).String()
			}
		}
		at := map[string]int{"errorAt": 1, "warnAt": 1, "fault": 1, "mendable": 2}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				texts[text(n)] = fset.Position(n.Pos()).String()
			case *ast.CallExpr:
				switch f := n.Fun.(type) {
				case *ast.SelectorExpr:
					if i, ok := at[f.Sel.Name]; ok && i < len(n.Args) {
						is(n.Args[i])
					}
				case *ast.Ident: // a closure that takes the ID first
					if f.Name == "fault" && len(n.Args) > 0 {
						is(n.Args[0])
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "ID" || key.Name == "id") {
					is(n.Value)
				}
			case *ast.AssignStmt:
				if name, ok := n.Lhs[0].(*ast.Ident); ok && name.Name == "id" {
					is(n.Rhs[0])
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if strings.HasPrefix(name.Name, "Lint") && i < len(n.Values) {
						is(n.Values[i])
					}
				}
			}
			return true
		})
	}
	return ids, texts
}

func TestTheCatalogHasEveryFindingAndNoOther(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range []string{".", "../policy"} {
		ids, texts := idsInSource(t, dir)
		for id, at := range ids {
			if _, ok := Lookup(id); !ok {
				t.Errorf("%s: the catalogue lacks %q", at, id)
			}
		}
		for text := range texts {
			found[text] = true
		}
	}
	for _, e := range Catalog() {
		if !found[e.ID] {
			t.Errorf("%s %s: no code finds it", e.Code(), e.ID)
		}
	}
}

func TestTheCatalogIsComplete(t *testing.T) {
	numbers, ids := map[int]bool{}, map[string]bool{}
	for _, e := range Catalog() {
		if numbers[e.Number] || ids[e.ID] || e.Number < 1 || e.Number > 999 || !idWord.MatchString(e.ID) {
			t.Errorf("%s %q: repeated or malformed", e.Code(), e.ID)
		}
		numbers[e.Number], ids[e.ID] = true, true
		if e.Title == "" || e.Why == "" || e.Fix == "" || e.ID != "internal" && (e.Bad == "" || e.Good == "") {
			t.Errorf("%s %s: something is empty", e.Code(), e.ID)
		}
		for _, name := range []string{e.Code(), strings.ToLower(e.Code()), e.ID, " " + e.ID + " ", "MR" + strconv.Itoa(e.Number)} {
			if got, ok := Lookup(name); !ok || got.Number != e.Number {
				t.Errorf("Lookup(%q) = %v, %v", name, got.Code(), ok)
			}
		}
	}
	for _, name := range []string{"", "MR", "MR0", "MR-1", "MR999", "MR1e1", "nope"} {
		if e, ok := Lookup(name); ok {
			t.Errorf("Lookup(%q) = %s", name, e.Code())
		}
	}
}
