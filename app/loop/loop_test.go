package loop_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"queuelab/app/loop"
)

var errAway = errors.New("it is away")

// run runs a loop for a while of a synctest's time.
func run(t *testing.T, l loop.Loop, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { l.Run(ctx) })
	time.Sleep(d)
	cancel()
	wg.Wait()
}

func TestAnOutageIsToldWhenItBeginsAndWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		looks := 0
		run(t, loop.Loop{Every: time.Second, Tell: loop.Say(slog.New(slog.NewTextHandler(&log, nil)), "nothing is looked at"),
			Look: func(context.Context) (time.Duration, error) {
				if looks++; looks > 2 && looks <= 42 || looks == 50 {
					return 0, errAway
				}
				return 0, nil
			}}, 49500*time.Millisecond)
		if looks != 50 {
			t.Errorf("got %d looks in 49.5 s, want one a second and one at once", looks)
		}
		for line, want := range map[string]int{`msg="nothing is looked at"`: 2, `msg="over: nothing is looked at" after=40s`: 1} {
			if got := strings.Count(log.String(), line); got != want {
				t.Errorf("got %d times %s in\n%swant %d", got, line, log.String(), want)
			}
		}
	})
}

func TestALookWithoutAnAnswerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told error
		looks := 0
		run(t, loop.Loop{Every: time.Second, Within: 3 * time.Second, Tell: func(err error) { told = err },
			Look: func(ctx context.Context) (time.Duration, error) {
				looks++
				<-ctx.Done()
				return 0, ctx.Err()
			}}, 7500*time.Millisecond)
		if looks != 2 || !errors.Is(told, loop.ErrNoAnswer) || !errors.Is(told, context.Canceled) {
			t.Errorf("got %d looks and %v, want the second after 4 s, and that there was no answer", looks, told)
		}
	})
}

func TestALookThatGetsOnMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := loop.Within(t.Context(), 3*time.Second, func(ctx context.Context) error {
			for range 10 {
				time.Sleep(2 * time.Second)
				loop.Step(ctx)
			}
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("got %v, want 20 s with steps of 2 s to be fine", err)
		}
	})
}

func TestAnEndIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run(t, loop.Loop{Tell: func(err error) { t.Errorf("got told of %v, want nothing: the service stops", err) },
			Look: func(ctx context.Context) (time.Duration, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}}, time.Second)
	})
}

func TestAPauseCanBeEndedEarlyAfterARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		began, looks := time.Now(), []time.Duration{}
		run(t, loop.Loop{Every: time.Second, Rest: 100 * time.Millisecond, Wake: wake,
			Look: func(context.Context) (time.Duration, error) {
				looks = append(looks, time.Since(began))
				switch len(looks) {
				case 1:
					wake <- struct{}{}
				case 2:
					return 50 * time.Millisecond, nil // less than the rest
				}
				return 0, nil
			}}, 1200*time.Millisecond)
		want := []time.Duration{0, 100 * time.Millisecond, 150 * time.Millisecond, 1150 * time.Millisecond}
		if len(looks) != len(want) {
			t.Fatalf("got looks at %v, want %v", looks, want)
		}
		for i := range want {
			if looks[i] != want[i] {
				t.Errorf("got looks at %v, want %v", looks, want)
			}
		}
	})
}

func TestOneOfManyIsToldASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s loop.Seldom
		told := 0
		for range 1000 {
			if s.Now() {
				told++
			}
			time.Sleep(5 * time.Millisecond)
		}
		if told < 5 || told > 6 {
			t.Errorf("got %d in 5 s, want one a second", told)
		}
	})
}
