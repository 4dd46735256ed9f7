package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestEveryOperationOfTheAuditIsDocumented compares the names of operations that are written out
// in the source with the table in docs/wire.md, "Audit".
func TestEveryOperationOfTheAuditIsDocumented(t *testing.T) {
	content, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n| `op` | `target` |\n|---|---|\n")
	table, _, _ := strings.Cut(section, "\n\n")
	found := 0
	for _, file := range sources(t) {
		positions := token.NewFileSet()
		f, err := parser.ParseFile(positions, filepath.Join("../..", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range operations(f) {
			op, _ := strconv.Unquote(name.Value)
			if found++; op != "" && !strings.Contains(table, "`"+op+"`") {
				t.Errorf("%s: docs/wire.md, \"Audit\" does not list %q", positions.Position(name.Pos()), op)
			}
		}
	}
	if found < 60 {
		t.Errorf("only %d operations are found in the source", found)
	}
}

// operations are the texts in a file that name one: of types.Did and the field Op, and what the
// variables and constants there are set to.
func operations(f *ast.File) (names []*ast.BasicLit) {
	variables := map[string]bool{}
	add := func(e ast.Expr) {
		switch e := e.(type) {
		case *ast.BasicLit:
			names = append(names, e)
		case *ast.Ident:
			variables[e.Name] = true
		}
	}
	each := func(use func(ast.Node)) {
		ast.Inspect(f, func(n ast.Node) bool { use(n); return true })
	}
	each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if named(n.Fun, "Did") && len(n.Args) == 5 {
				add(n.Args[2])
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if field, is := e.(*ast.KeyValueExpr); is && named(field.Key, "Op") && named(n.Type, "Operation") {
					add(field.Value)
				}
			}
		case *ast.AssignStmt: // o.Op = ...
			for i, left := range n.Lhs {
				if named(left, "Op") && len(n.Rhs) == len(n.Lhs) {
					add(n.Rhs[i])
				}
			}
		}
	})
	set := func(e ast.Expr) {
		if text, is := e.(*ast.BasicLit); is {
			names = append(names, text)
		}
	}
	each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if v, is := left.(*ast.Ident); is && variables[v.Name] && len(n.Rhs) == len(n.Lhs) {
					set(n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			for i, v := range n.Names {
				if variables[v.Name] && i < len(n.Values) {
					set(n.Values[i])
				}
			}
		}
	})
	return names
}

// named reports whether an expression is that name, of its package or another one, or of a field.
func named(e ast.Expr, name string) bool {
	if s, is := e.(*ast.SelectorExpr); is {
		e = s.Sel
	}
	id, is := e.(*ast.Ident)
	return is && id.Name == name
}
