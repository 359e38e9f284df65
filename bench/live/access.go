package live

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

// access keeps other pages, and other people, from pressing the buttons: whoever
// comes must have the token of this start, name a host that is this machine, and
// for what changes something set a header that a foreign page cannot.
type access struct {
	token  string
	cookie string
	remote bool // others than this machine may come
}

// Header is what every answer has, so that a second server knows the first.
const Header = "X-Queuelab"

func newAccess(addr net.Addr, remote bool) access {
	_, port, _ := net.SplitHostPort(addr.String())
	return access{token: strings.ToLower(rand.Text()), cookie: "queuelab-" + port, remote: remote}
}

func (a access) protect(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set(Header, "live")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		if !a.here(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "wrong_host", fmt.Sprintf("this lab is not %q", r.Host))
			return
		}
		if err := crossOrigin.Check(r); err != nil {
			refuse(w, http.StatusForbidden, "no_header", "another page may not do that")
			return
		}
		if r.Method == http.MethodGet && r.URL.Path == "/" && r.URL.Query().Has("token") {
			if a.right(r.URL.Query().Get("token")) {
				http.SetCookie(w, &http.Cookie{Name: a.cookie, Value: a.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
				http.Redirect(w, r, "/", http.StatusSeeOther)
				return
			}
			refuse(w, http.StatusUnauthorized, "no_token", "this token is of another start: take the address that `queuelab serve` printed last")
			return
		}
		if c, err := r.Cookie(a.cookie); err != nil || !a.right(c.Value) {
			refuse(w, http.StatusUnauthorized, "no_token", "open the address that `queuelab serve` printed: it has the token of this start")
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get(Header) == "" {
			refuse(w, http.StatusForbidden, "no_header", "the header "+Header+" is missing")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a access) right(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(a.token)) == 1
}

// here reports whether a host is this machine: a name of somebody else's that
// leads here is how a foreign page would come in.
func (a access) here(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.Trim(name, "[]")
	if name == "localhost" {
		return true
	}
	if ip := net.ParseIP(name); ip != nil {
		return a.remote || ip.IsLoopback()
	}
	own, err := os.Hostname()
	return a.remote && err == nil && strings.EqualFold(name, own)
}
