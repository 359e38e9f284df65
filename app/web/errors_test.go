package web

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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

// raw sends bytes as they are and returns the status and the body of the answer.
func (l *lab) raw(request string) (int, string) {
	l.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.base, "http://"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		l.t.Fatal(err)
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		l.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestWhatIsNoRequestIsAnsweredAsJSONThatRepeatsNothingOfIt(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	for _, tc := range []struct {
		name, request string
		status        int
		code          string
	}{
		{"an unknown method", "FOO /api/vouchers HTTP/1.1\r\nHost: x\r\n\r\n", 405, "method_not_allowed"},
		{"no HTTP", "SECRET\r\n\r\n", 400, "invalid"},
		{"a length that is none", "POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Length: SECRET\r\n\r\n", 400, "invalid"},
		{"two lengths", "POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\ncontent-length: 3\r\n\r\n{}x", 400, "invalid"},
		{"a length and chunks", "POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400, "invalid"},
		{"one length", "POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n{\"user\":\"u\"}", 200, ""},
		{"chunks", "POST /api/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n{\"user\":\"u\"}\r\n0\r\n\r\n", 200, ""},
	} {
		status, body := l.raw(tc.request)
		if status != tc.status || code(t, body) != tc.code || strings.Contains(body, "SECRET") {
			t.Errorf("%s: got %d %s, want %d %s, and nothing repeated", tc.name, status, body, tc.status, tc.code)
		}
	}
}

func TestRefusalsSayTheNextStepInWordsOfTheReader(t *testing.T) {
	l := newLab(t, "memory://orders", true)
	soon, open := l.voucher(1, time.Hour, 2*time.Hour), l.voucher(1, -time.Hour, time.Hour)
	if status, _, body := l.buy(open, as("a")); status != 202 {
		t.Fatalf("got %d %s", status, body)
	}
	l.call("GET", "/api/vouchers", "") // when a sale opens is known from the last look
	opens := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:")
	for _, tc := range []struct{ name, method, path, body, auth, want string }{
		{"sold out", "POST", "/api/vouchers/" + open + "/orders", "", as("b"), "GET /api/orders"},
		{"not started", "POST", "/api/vouchers/" + soon + "/orders", "", as("b"), opens},
		{"no such voucher", "POST", "/api/vouchers/7/orders", "", as("b"), "GET /api/vouchers"},
		{"no such order", "GET", "/api/orders/7", "", as("b"), "GET /api/orders"},
		{"no such address", "GET", "/api/nothing", "", as("b"), "/api/vouchers"},
		{"another method", "DELETE", "/api/vouchers", "", asOperator, "Allow"},
		{"a number that is a text", "POST", "/api/vouchers", `{"stock":"many"}`, asOperator, "stock is a string, want a whole number"},
		{"a time that is none", "POST", "/api/vouchers", `{"beginTime":"tomorrow"}`, asOperator, "2026-01-31T09:00:00Z"},
		{"no object", "POST", "/api/vouchers", `[]`, asOperator, "it is a array, not an object"},
		{"a field that nobody knows", "POST", "/api/vouchers", `{"x":1}`, asOperator, `: unknown field \"x\"`},
		{"a name of another script", "POST", "/api/login", `{"user":"京东"}`, "X: y", "not '京'"},
	} {
		if _, _, body := l.call(tc.method, tc.path, tc.body, tc.auth); !strings.Contains(body, tc.want) || strings.Contains(body, "Go ") {
			t.Errorf("%s: got %s, want %q in it", tc.name, body, tc.want)
		}
	}
}
