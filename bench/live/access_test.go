package live

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"queuelab/bench/trial"
)

func TestOnlyWhoHasTheTokenComesIn(t *testing.T) {
	l := serveLab(t, Options{})
	if status, _ := l.ask(t, "GET", "/api/about", nil); status != http.StatusOK {
		t.Errorf("got %d with the token, want 200", status)
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(l.base, "http://"))
	for _, c := range []struct {
		name         string
		method, path string
		header       []string
		with         bool // the token
		status       int
		code         string
	}{
		{"without the token nothing is shown", "GET", "/", nil, false, http.StatusUnauthorized, "no_token"},
		{"nor told", "GET", "/api/about", nil, false, http.StatusUnauthorized, "no_token"},
		{"nor done", "POST", "/api/shows", nil, false, http.StatusUnauthorized, "no_token"},
		{"the token of another start is none", "GET", "/?token=abc", nil, false, http.StatusUnauthorized, "no_token"},
		{"a name that leads here is not ours", "GET", "/api/about", []string{"Host", "evil.example:" + port}, true, http.StatusMisdirectedRequest, "wrong_host"},
		{"nor is an address of another network", "GET", "/api/about", []string{"Host", "192.0.2.1:" + port}, true, http.StatusMisdirectedRequest, "wrong_host"},
		{"localhost is", "GET", "/api/about", []string{"Host", "localhost:" + port}, true, http.StatusOK, ""},
		{"another page may not press a button", "POST", "/api/shows", []string{"Origin", "http://evil.example"}, true, http.StatusForbidden, "no_header"},
		{"also where the browser says only that it is another", "DELETE", "/api/shows/current", []string{"Sec-Fetch-Site", "cross-site"}, true, http.StatusForbidden, "no_header"},
		{"a form cannot set the header", "POST", "/api/shows", []string{Header, ""}, true, http.StatusForbidden, "no_header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			some := *l // with the cookie for every name, or for none
			some.client = &http.Client{}
			defer some.client.CloseIdleConnections()
			header := c.header
			if c.with {
				header = append(header, "Cookie", "queuelab-"+port+"="+tokenOf(t, l.URL))
			}
			status, v := some.ask(t, c.method, c.path, nil, header...)
			if code, _ := v["code"].(string); status != c.status || code != c.code {
				t.Errorf("got %d %v, want %d %s", status, v, c.status, c.code)
			}
		})
	}
}

func TestAPortThatIsTakenIsToldByWhom(t *testing.T) {
	first := serveLab(t, Options{})
	address := strings.TrimPrefix(first.base, "http://")
	if err := serveOn(t, address, false); err == nil || !strings.Contains(err.Error(), "a live lab serves on "+address+" already") {
		t.Errorf("got %v for a second lab on the port, want that one serves already", err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // whoever it is, it does not speak HTTP
		for {
			c, err := other.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	defer other.Close()
	if err := serveOn(t, other.Addr().String(), false); err == nil || !strings.Contains(err.Error(), "another program has the port") {
		t.Errorf("got %v for a port that somebody else has, want that it is taken", err)
	}
}

func TestOtherMachinesAreKeptOut(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		if err := serveOn(t, address, false); !errors.Is(err, ErrRemote) {
			t.Errorf("%s: got %v, want %v", address, err, ErrRemote)
		}
	}
	for _, address := range []string{"nonsense", "127.0.0.1:99999", "127.0.0.1:abc", "127.0.0.1:-1"} {
		if err := serveOn(t, address, false); err == nil || !strings.Contains(err.Error(), "127.0.0.1:7070") {
			t.Errorf("%s: got %v, want an example of a right address", address, err)
		}
	}
}

// serveOn serves until it fails; one that does not is stopped at once.
func serveOn(t *testing.T, address string, remote bool) error {
	t.Helper()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	return s.Serve(ctx, address, remote, func(string) { stop() })
}

func TestAWrongRequestIsOneSentence(t *testing.T) {
	l := serveLab(t, Options{})
	seven := []string{"memory/bounded", "redis-list/rdb", "redis-list/aof-no", "redis-list/no-persistence", "redis-list/aof-always", "redis-list/aof-everysec", "redis-pubsub/default"}
	good := request{Scenario: "normal", Settings: []string{"memory/bounded"}}
	but := func(change func(*request)) request {
		r := good
		change(&r)
		return r
	}
	for _, c := range []struct {
		name         string
		method, path string
		body         any
		status       int
		code, says   string
	}{
		{"no show yet", "GET", "/api/shows/current", nil, http.StatusNotFound, "no_show", "no show"},
		{"nor one to strike", "POST", "/api/shows/current/strikes", nil, http.StatusNotFound, "no_show", "no show"},
		{"an unknown scenario", "POST", "/api/shows", but(func(r *request) { r.Scenario = "party" }), http.StatusBadRequest, "unknown_scenario", `"party"`},
		{"an unknown setting", "POST", "/api/shows", but(func(r *request) { r.Settings = []string{"redis-lists/x"} }), http.StatusBadRequest, "unknown_setting", `"redis-lists/x"`},
		{"no setting", "POST", "/api/shows", but(func(r *request) { r.Settings = nil }), http.StatusBadRequest, "bad_request", "choose one to 6"},
		{"a setting twice", "POST", "/api/shows", but(func(r *request) { r.Settings = []string{"memory/bounded", "memory/bounded"} }), http.StatusBadRequest, "bad_request", "twice"},
		{"seven settings", "POST", "/api/shows", but(func(r *request) { r.Settings = seven }), http.StatusBadRequest, "too_many_lanes", "at most 6"},
		{"too fast", "POST", "/api/shows", but(func(r *request) { r.Speed = 1e6 }), http.StatusBadRequest, "bad_request", "1 to 5000"},
		{"backwards", "POST", "/api/shows", but(func(r *request) { r.Speed = -1 }), http.StatusBadRequest, "bad_request", "1 to 5000"},
		{"too many consumers", "POST", "/api/shows", but(func(r *request) { r.Consumers = 9 }), http.StatusBadRequest, "bad_request", "1 to 4"},
		{"too long", "POST", "/api/shows", but(func(r *request) { r.Seconds = 1e6 }), http.StatusBadRequest, "bad_request", "1 to 600"},
		{"not what is asked for", "POST", "/api/shows", map[string]any{"scenarios": 1}, http.StatusBadRequest, "bad_request", "scenarios"},
		{"more than anybody needs", "POST", "/api/shows", map[string]string{"scenario": strings.Repeat("x", mostBody)}, http.StatusRequestEntityTooLarge, "too_large", "65536"},
		{"what is not there", "GET", "/api/nothing", nil, http.StatusNotFound, "bad_request", "/api/nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, v := l.ask(t, c.method, c.path, c.body)
			text, _ := v["error"].(string)
			if status != c.status || v["code"] != c.code || !strings.Contains(text, c.says) {
				t.Errorf("got %d %v, want %d %s and %q", status, v, c.status, c.code, c.says)
			}
		})
	}
	l.must(t, http.StatusCreated, "POST", "/api/shows", good)
	var s seen
	l.watch(t, &s, func(s *seen) bool { return s.count(0, "sent") > 0 })
	for _, c := range []struct {
		name   string
		body   map[string]any
		status int
		says   string
	}{
		{"an unknown strike", map[string]any{"lane": 0, "strike": "shout"}, http.StatusBadRequest, `"shout"`},
		{"a lane that is not there", map[string]any{"lane": 3, "strike": "kill-consumer"}, http.StatusBadRequest, "0 to 0"},
		{"a broker where there is none", map[string]any{"lane": 0, "strike": "kill-broker"}, http.StatusConflict, "there is no broker to strike"},
		{"a disk where nothing is stored", map[string]any{"lane": 0, "strike": "cut-power"}, http.StatusConflict, "there is no broker to strike"},
		{"a database that is a file", map[string]any{"lane": 0, "strike": "pull-database"}, http.StatusConflict, "file"},
		{"another consumer of a queue in a process", map[string]any{"lane": 0, "strike": "start-consumer"}, http.StatusConflict, "another queue"},
		{"a consumer that never was", map[string]any{"lane": 0, "strike": "kill-consumer", "process": 77}, http.StatusConflict, "77"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, v := l.ask(t, "POST", "/api/shows/current/strikes", c.body)
			if text, _ := v["error"].(string); status != c.status || !strings.Contains(text, c.says) {
				t.Errorf("got %d %v, want %d and %q", status, v, c.status, c.says)
			}
		})
	}
	for id, code := range map[string]string{"1-1-0-999999999": "unknown_message", "nonsense": "unknown_message"} {
		if status, v := l.ask(t, "GET", "/api/shows/current/messages/"+id, nil); status != http.StatusNotFound || v["code"] != code {
			t.Errorf("message %s: got %d %v, want 404 %s", id, status, v, code)
		}
	}
	// What is greyed is greyed with the reason that a press gets.
	lanes := l.must(t, http.StatusOK, "GET", "/api/shows/current", nil)["lanes"].([]any)
	greyed := 0
	for _, x := range lanes[0].(map[string]any)["strikes"].([]any) {
		if s := x.(map[string]any); s["available"] == false {
			greyed++
			if s["why"] == "" {
				t.Errorf("%v is greyed without a reason", s["name"])
			}
		}
	}
	if greyed != 11 {
		t.Errorf("got %d strikes greyed on a queue in a process, want 11: three of consumers and back are left, but for the start of one", greyed)
	}
}

func TestABodyIsOneRequest(t *testing.T) {
	for body, good := range map[string]bool{
		`{"scenario":"lag"}`: true, "{\"scenario\":\"lag\"}\n ": true,
		`{"scenario":"lag"} {}`: false, `{"scenario":"lag"} trailing`: false, "": false,
	} {
		var asked request
		err := read(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/api/shows", strings.NewReader(body)), &asked)
		var no refusal
		if good != (err == nil) || !good && (!errors.As(err, &no) || no.code != "bad_request") {
			t.Errorf("%q: got error %v, want it taken: %v", body, err, good)
		}
	}
}

func TestNothingIsGreyedBeforeTheQueueWasAsked(t *testing.T) {
	l := &lane{state: stateStarting, setting: trial.Setting{Backend: "redis-list", Broker: "redis"}, show: &show{}}
	for _, a := range l.availability() {
		if !a.Available || a.Why != "" {
			t.Errorf("%s: got greyed because %q, want it open while nobody knows", a.Name, a.Why)
		}
	}
	if l.state = stateRunning; !slices.ContainsFunc(l.availability(), func(a availability) bool { return !a.Available }) {
		t.Error("got nothing greyed once the lane runs without a database, want that greyed")
	}
}
