package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"queuelab/bench/trial"
)

// lab is a server that serves, and a client of it that has its token.
type lab struct {
	*Server
	URL    string // with the token
	base   string
	client *http.Client
}

// serveLab serves until the test is over, and then sees that it ends well.
func serveLab(t *testing.T, o Options) *lab {
	t.Helper()
	if o.Settings == nil {
		o.Settings = trial.Settings()
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	opened, served := make(chan string, 1), make(chan error, 1)
	go func() { served <- s.Serve(ctx, "127.0.0.1:0", false, func(u string) { opened <- u }) }()
	l := &lab{Server: s}
	select {
	case l.URL = <-opened:
	case err := <-served:
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	l.client = &http.Client{Jar: jar}
	l.base, _, _ = strings.Cut(l.URL, "/?")
	t.Cleanup(func() {
		l.client.CloseIdleConnections()
		stop()
		if err := <-served; err != nil {
			t.Errorf("the lab ended with %v", err)
		}
	})
	resp, err := l.client.Get(l.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return l
}

// ask sends a request, and returns the status and what was answered.
func (l *lab) ask(t *testing.T, method, path string, body any, header ...string) (int, map[string]any) {
	t.Helper()
	var b io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, l.base+path, b)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(Header, "1")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := l.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	v := map[string]any{}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return resp.StatusCode, v
}

// must is ask, where there is one right status.
func (l *lab) must(t *testing.T, want int, method, path string, body any) map[string]any {
	t.Helper()
	status, v := l.ask(t, method, path, body)
	if status != want {
		t.Fatalf("%s %s: got %d %v, want %d", method, path, status, v, want)
	}
	return v
}

// seen is what a watcher has been told.
type seen struct {
	ticks []map[string]any
	lanes map[int]map[string]any // the latest of each thing
	lost  map[int][]string
}

// watch follows the show until enough holds, or it has ended. after is the last
// tick that was seen before.
func (l *lab) watch(t *testing.T, s *seen, enough func(*seen) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+"/api/shows/current/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.ticks); n > 0 {
		r.Header.Set("Last-Event-ID", json.Number(jsonOf(t, s.ticks[n-1]["n"])).String())
	}
	resp, err := l.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		text := lines.Text()
		if text == "event: end" {
			if enough == nil || enough(s) {
				return
			}
			t.Fatalf("the show ended before what was waited for: %s", jsonOf(t, s.lanes))
		}
		data, ok := strings.CutPrefix(text, "data: ")
		if !ok {
			continue
		}
		tick := map[string]any{}
		if err := json.Unmarshal([]byte(data), &tick); err != nil {
			t.Fatal(err)
		}
		s.take(tick)
		if enough != nil && enough(s) {
			return
		}
	}
	t.Fatalf("the stream ended: %v; so far: %s", lines.Err(), jsonOf(t, s.lanes))
}

func (s *seen) take(tick map[string]any) {
	if s.lanes == nil {
		s.lanes, s.lost = map[int]map[string]any{}, map[int][]string{}
	}
	s.ticks = append(s.ticks, tick)
	for _, x := range tick["lanes"].([]any) {
		news := x.(map[string]any)
		n := int(news["lane"].(float64))
		if s.lanes[n] == nil {
			s.lanes[n] = map[string]any{}
		}
		for name, v := range news {
			s.lanes[n][name] = v
		}
		some, _ := news["lost"].([]any)
		for _, row := range some {
			s.lost[n] = append(s.lost[n], row.([]any)[0].(string))
		}
	}
}

func (s *seen) state() string {
	if len(s.ticks) == 0 {
		return ""
	}
	return s.ticks[len(s.ticks)-1]["state"].(string)
}

// count is a lane's latest count; -1: not known.
func (s *seen) count(lane int, name string) int {
	c, _ := s.lanes[lane]["counts"].(map[string]any)
	n, ok := c[name].(float64)
	if !ok {
		return -1
	}
	return int(n)
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func tokenOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("token")
}
