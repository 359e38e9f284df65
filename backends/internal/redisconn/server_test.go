package redisconn_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"queuelab/backends/internal/params"
	"queuelab/backends/internal/redisconn"
	"queuelab/backends/internal/redistest"
	"queuelab/bench/broker/brokertest"
	"queuelab/queue"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

func parse(t *testing.T, raw string) (redisconn.Server, error) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return redisconn.Parse(u, params.New(u))
}

func inspect(t *testing.T, raw string) (redisconn.Facts, error) {
	t.Helper()
	s, err := parse(t, raw)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Client(1)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return s.Inspect(ctx, c)
}

func TestAURLNamesAServer(t *testing.T) {
	for raw, want := range map[string]redisconn.Server{
		"redis+list://h":                      {Addr: "h:6379", Timeout: 3 * time.Second},
		"redis+list://[::1]:7/":               {Addr: "[::1]:7", Timeout: 3 * time.Second},
		"redis+list://:p@h:1/2?timeout=500ms": {Addr: "h:1", Password: "p", DB: 2, Timeout: 500 * time.Millisecond},
		"redis+list://u:p%40ss@h/0":           {Addr: "h:6379", User: "u", Password: "p@ss", Timeout: 3 * time.Second},
	} {
		if got, err := parse(t, raw); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", raw, got, err, want)
		}
	}
	for raw, want := range map[string]string{
		"redis+list:///0":       "names no host",
		"redis+list://h/orders": "no database number",
		"redis+list://h/-1":     "no database number",
		"redis+list://u@h/0":    "user without a password",
	} {
		if _, err := parse(t, raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %q", raw, err, want)
		}
	}
}

func TestWhatUsuallyGoesWrongIsOneClearSentence(t *testing.T) {
	server := brokertest.Start(t, "redis", "no-persistence")
	c := redistest.Client(t, server)
	if err := c.Do(t.Context(), "ACL", "SETUSER", "guest", "on", ">right", "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	at := func(user, path string) string {
		return strings.Replace(strings.TrimSuffix(server.URL(), "/0"), "redis://", "redis+list://"+user, 1) + path
	}
	for name, tc := range map[string]struct{ raw, want string }{
		"a wrong password":       {at("guest:wrong@", "/0"), "the server refuses the user name or the password"},
		"an unknown user":        {at("nobody:x@", "/0"), "the server refuses the user name or the password"},
		"a database too high":    {at("", "/99"), "the server has no database 99"},
		"nothing listens":        {"redis+list://127.0.0.1:1/0", "nothing listens at 127.0.0.1:1"},
		"something else listens": {silent(t), "no answer from"},
	} {
		_, err := inspect(t, tc.raw)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want it to begin with %q", name, err, tc.want)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "wrong@")) {
			t.Errorf("%s: got %q, want one line without the password", name, err)
		}
	}
	if _, err := inspect(t, at("guest:right@", "/0")); err != nil {
		t.Errorf("the right password: got %v", err)
	}

	if err := c.ConfigSet(t.Context(), "requirepass", "secret").Err(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.ConfigSet(context.Background(), "requirepass", "").Err(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := inspect(t, at("", "/0")); err == nil || !strings.HasPrefix(err.Error(), "the server wants a password") {
		t.Errorf("no password: got %v, want that the server wants one", err)
	}
}

// silent is the URL of a listener that accepts and never answers.
func silent(t *testing.T) string {
	proxy := redistest.NewProxy(t, brokertest.Start(t, "redis", "no-persistence"))
	proxy.Silence(true)
	return proxy.URL(redistest.Backend{Scheme: "redis+list"}, "q", "timeout=200ms")
}

func TestWhatTheServerDoesNotTellIsTakenToBeWeaker(t *testing.T) {
	server := brokertest.Start(t, "redis", "aof-always")
	c := redistest.Client(t, server)
	for _, rule := range [][]any{
		{"ACL", "SETUSER", "noconfig", "on", ">p", "~*", "&*", "+@all", "-config"},
		{"ACL", "SETUSER", "noinfo", "on", ">p", "~*", "&*", "+@all", "-config", "-info"},
	} {
		if err := c.Do(t.Context(), rule...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for user, want := range map[string]queue.Confirm{
		"": queue.ConfirmDisk, "noconfig:p@": queue.ConfirmOS, "noinfo:p@": queue.ConfirmMemory,
	} {
		f, err := inspect(t, strings.Replace(server.URL(), "redis://", "redis+list://"+user, 1))
		if err != nil || f.Confirm() != want || f.Durable() != (want != queue.ConfirmMemory) {
			t.Errorf("user %q: got %v, durable %v, %v, want %v", user, f.Confirm(), f.Durable(), err, want)
		}
	}
}

func TestAServerThatMayEvictTheQueueKeepsNothing(t *testing.T) {
	server := brokertest.Start(t, "redis", "aof-always")
	c := redistest.Client(t, server)
	raw := strings.Replace(server.URL(), "redis://", "redis+list://", 1)
	for _, step := range []struct {
		maxmemory, policy string
		durable           bool
	}{{"0", "allkeys-lru", true}, {"100mb", "noeviction", true}, {"100mb", "volatile-lru", true}, {"100mb", "allkeys-lru", false}} {
		for name, value := range map[string]string{"maxmemory": step.maxmemory, "maxmemory-policy": step.policy} {
			if err := c.ConfigSet(t.Context(), name, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		f, err := inspect(t, raw)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]queue.Confirm{true: queue.ConfirmDisk, false: queue.ConfirmMemory}[step.durable]; f.Durable() != step.durable || f.Confirm() != want {
			t.Errorf("maxmemory %s, %s: got durable %v, confirmed by %v, want %v and %v", step.maxmemory, step.policy, f.Durable(), f.Confirm(), step.durable, want)
		}
	}
}
