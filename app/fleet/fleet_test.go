package fleet

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

type book struct {
	said []Instance
	fail error
}

func (b *book) Beat(_ context.Context, i Instance) error {
	b.said = append(b.said, i)
	return b.fail
}

func (b *book) Instances(context.Context) ([]Instance, error) { return b.said, nil }

func TestAnInstanceTellsHowItIsUntilItSaysThatItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{fail: errors.New("the database is away")} // which is no reason to be silent for ever
		var log bytes.Buffer
		var down atomic.Bool
		answer := func(context.Context) error {
			if down.Load() {
				return errors.New("refused")
			}
			return nil
		}
		p := &Pulse{Store: b, Self: Instance{Number: 7, Holder: "h", Role: "web"}, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Ready: map[string]func(context.Context) error{
				"database":  func(context.Context) error { return nil },
				"queue":     answer,
				"admission": answer,
			}}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.Run(ctx) }()
		time.Sleep(beatEvery / 2)
		synctest.Wait()
		down.Store(true)
		time.Sleep(beatEvery)
		synctest.Wait()
		stop()
		<-done
		want := []Instance{
			{Number: 7, Holder: "h", Role: "web"},
			{Number: 7, Holder: "h", Role: "web", Up: beatEvery, Failing: []string{"admission", "queue"}},
			{Number: 7, Holder: "h", Role: "web", Up: beatEvery + beatEvery/2, Stopped: true},
		}
		if diff := cmp.Diff(want, b.said); diff != "" {
			t.Error(diff)
		}
		if got := strings.Count(log.String(), "could not say"); got != 1 {
			t.Errorf("got %d lines about one outage, want one: %s", got, log.String())
		}
	})
}

func TestAPartThatHangsIsOneThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := Failing(t.Context(), map[string]func(context.Context) error{
			"queue": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			"ok":    func(context.Context) error { return nil },
		})
		if diff := cmp.Diff([]string{"queue"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestHealthIsTheLastWordUnlessThatIsOld(t *testing.T) {
	for name, tc := range map[string]struct {
		i    Instance
		want Health
	}{
		"it said that all is well":                {Instance{Silent: time.Second}, Ready},
		"a part does not answer it":               {Instance{Failing: []string{"queue"}}, NotReady},
		"it has said nothing for too long":        {Instance{Silent: SilentAfter + 1}, Silent},
		"what failed long ago may be well by now": {Instance{Silent: SilentAfter + 1, Failing: []string{"queue"}}, Silent},
		"it said that it stops, long ago":         {Instance{Silent: time.Hour, Stopped: true}, Stopped},
	} {
		if got := tc.i.Health(); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
