package web

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"queuelab/app/sale"
)

// codes are all constants of type sale.Code, as they are written down.
func codes(t *testing.T) (all []sale.Code) {
	t.Helper()
	files, err := filepath.Glob("../sale/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if typ, ok := v.Type.(*ast.Ident); !ok || typ.Name != "Code" {
				return true
			}
			for _, value := range v.Values {
				lit, ok := value.(*ast.BasicLit)
				if !ok {
					t.Fatalf("%s: got a code that is no literal", name)
				}
				code, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, sale.Code(code))
			}
			return true
		})
	}
	return all
}

func TestEveryCodeHasAStatus(t *testing.T) {
	all := codes(t)
	if len(all) < 10 {
		t.Fatalf("got codes %v, want all that there are", all)
	}
	for _, c := range all {
		if got := statusOf(c); got < 400 || got == 500 {
			t.Errorf("%s: got status %d, want one that says what it is", c, got)
		}
	}
	if got := statusOf("new"); got != 500 {
		t.Errorf("got %d for a code that nobody knows, want 500 and no success", got)
	}
}
