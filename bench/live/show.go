package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"queuelab/bench/broker"
	"queuelab/bench/ledger"
	"queuelab/bench/node"
	"queuelab/bench/trial"
)

// Why a show ended.
const (
	whyStopped   = "stopped"
	whyDrained   = "drained"
	whyAbandoned = "abandoned"
	whyLimit     = "limit"
	whyFailed    = "failed"
)

// request is what somebody asks to be shown.
type request struct {
	Scenario  string   `json:"scenario"`
	Settings  []string `json:"settings"`
	Speed     float64  `json:"speed"`
	Consumers int      `json:"consumers"`
	Seconds   int      `json:"seconds"`
}

// show is one scenario on some settings, from the first process to the verdict.
type show struct {
	server    *Server
	id        string
	tag       string // in the names of its queues
	dir       string
	scenario  scenario
	consumers int
	seconds   int
	started   time.Time
	zero      int64 // the same moment, as of ledger.Now
	lanes     []*lane
	history   *history
	done      chan struct{} // closed after the last tick

	ctx    context.Context // of the show's processes: ended at once by ending
	cancel context.CancelFunc

	mu       sync.Mutex
	speed    float64
	newSpeed bool
	state    string
	why      string        // it was asked to end
	ending   chan struct{} // closed once it was
	at       time.Time     // when the lanes began to run

	database    *warm  // nil: effects go to a file
	databaseURL string // set before a lane runs
	databaseWhy string // why it is no PostgreSQL
	rows        *node.Effects
}

func newShow(s *Server, sc scenario, settings []trial.Setting, r request) *show {
	id := fmt.Sprint(s.shows.Add(1))
	ctx, cancel := context.WithCancel(context.Background())
	v := &show{
		server: s, id: id, tag: fmt.Sprintf("%s_%d", id, time.Now().UnixMilli()%100_000_000), dir: filepath.Join(s.dir, "show-"+id), scenario: sc,
		consumers: r.Consumers, seconds: r.Seconds, speed: r.Speed, started: time.Now(), zero: ledger.Now(),
		history: newHistory(), done: make(chan struct{}), ending: make(chan struct{}), ctx: ctx, cancel: cancel, state: stateStarting,
	}
	for i, set := range settings {
		v.lanes = append(v.lanes, newLane(v, i, set))
	}
	return v
}

func (s *show) currentSpeed() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.speed
}

// messages is how many one producer sends at most.
func (s *show) messages() uint64 {
	return uint64(max(1, min(s.currentSpeed()*float64(s.seconds), maxMessages)))
}

// since is a moment in the show, in milliseconds.
func (s *show) since(at int64) float64 { return float64((at-s.zero)/1000) / 1000 }

// end asks the show to end: at once, or after its queues were read out.
func (s *show) end(why string, now bool) (state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == "" {
		s.why = why
		close(s.ending)
	}
	if now {
		s.cancel()
	}
	if s.state != stateEnded {
		return stateEnding
	}
	return s.state
}

// tickEvery is how often the page is told what is new.
const tickEvery = 100 * time.Millisecond

// run is the show's life.
func (s *show) run() {
	defer close(s.done)
	defer s.cancel()
	var observing sync.WaitGroup
	watching, stopWatching := context.WithCancel(context.Background())
	ticking := make(chan struct{})
	ticks := make(chan struct{})
	go func() { // the picture moves on whatever else is waited for
		defer close(ticks)
		t := time.NewTicker(tickEvery)
		defer t.Stop()
		for {
			select {
			case <-ticking:
				return
			case <-t.C:
				s.tick(false)
			}
		}
	}()
	if err := s.open(watching, &observing); err == nil {
		s.play()
	} else {
		s.end(whyFailed, false)
	}
	s.setState(stateEnding)
	s.wind()
	stopWatching()
	observing.Wait()
	for _, l := range s.lanes {
		if l.looker != nil {
			l.looker.close()
		}
	}
	if s.rows != nil {
		s.rows.Close()
	}
	s.setState(stateEnded)
	close(ticking)
	<-ticks
	s.tick(true)
	s.history.close()
}

// playing is how long the lanes have run.
func (s *show) playing() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() {
		return 0
	}
	return time.Since(s.at)
}

func (s *show) setState(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

// open starts the database and the lanes. It is an error where no lane came up.
func (s *show) open(watching context.Context, observing *sync.WaitGroup) error {
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	defer cancel()
	err := os.MkdirAll(s.dir, 0o755)
	if err == nil {
		err = s.openDatabase(ctx)
	}
	if err == nil {
		s.rows, err = s.openRows(ctx)
	}
	if err != nil {
		for _, l := range s.lanes {
			l.fail(err)
		}
		return err
	}
	var wg sync.WaitGroup
	for _, l := range s.lanes {
		wg.Go(func() {
			err := l.prepare(ctx)
			if err == nil {
				observing.Add(1)
				go l.observe(watching, observing)
				err = l.populate(ctx)
			}
			if err == nil {
				l.begin()
			} else {
				l.fail(err)
			}
		})
	}
	wg.Wait()
	if !slices.ContainsFunc(s.lanes, func(l *lane) bool { return l.is(stateRunning) }) {
		return errors.New("no lane came up")
	}
	return nil
}

// openDatabase is where effects go: PostgreSQL, or a file where there is none.
func (s *show) openDatabase(ctx context.Context) error {
	why := "a queue in the service's process needs nothing installed"
	var w *warm
	if slices.ContainsFunc(s.lanes, func(l *lane) bool { return l.setting.Broker != "" }) {
		var err error
		if w, err = s.server.pool.get(ctx, place{kind: "postgres", purpose: "effects"}); err != nil && !errors.Is(err, broker.ErrUnavailable) {
			return err
		} else if err != nil {
			w, why = nil, err.Error()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w != nil {
		s.database, s.databaseURL = w, w.broker.URL()
		return nil
	}
	s.databaseURL, s.databaseWhy = "sqlite:"+filepath.Join(s.dir, "effects.db"), why
	return nil
}

// openRows opens the table that effects go to.
func (s *show) openRows(ctx context.Context) (*node.Effects, error) {
	_, url := s.effects()
	if s.scenario.unique {
		return node.OpenUniqueEffects(ctx, url)
	}
	return node.OpenEffects(ctx, url)
}

// effects is the database that effects are committed to: nil where that is a file.
func (s *show) effects() (w *warm, url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.database, s.databaseURL
}

// noDatabase is why effects go to a file.
func (s *show) noDatabase() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.databaseWhy
}

func (s *show) databaseKind() string {
	if w, _ := s.effects(); w == nil {
		return "sqlite"
	}
	return "postgres"
}

// play lets the producers publish, all at once, and returns when the show is to
// end.
func (s *show) play() {
	s.mu.Lock()
	s.state, s.at = stateRunning, time.Now()
	s.mu.Unlock()
	for _, l := range s.lanes {
		l.produce()
	}
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	idle := 0
	for {
		select {
		case <-s.ending:
			return
		case <-s.ctx.Done():
			return
		case <-t.C:
		}
		finished := true
		for _, l := range s.lanes {
			finished = l.finished() && finished
		}
		if idle++; !finished {
			idle = 0
		}
		switch {
		case idle >= 10: // for a second: what is under way between two looks is not finished
			s.end(whyDrained, false)
		case s.playing() > 2*maxSeconds*time.Second, s.history.full():
			s.end(whyLimit, false)
		case s.history.unwatched() > s.server.options.Abandon:
			s.end(whyAbandoned, false)
		}
	}
}

// wind ends the lanes, each at its own pace, and draws the verdicts.
func (s *show) wind() {
	s.healAll()
	var wg sync.WaitGroup
	for _, l := range s.lanes {
		wg.Go(func() {
			l.wind()
			s.mu.Lock()
			why := s.why
			s.mu.Unlock()
			l.judge(why)
		})
	}
	wg.Wait()
}

// tick tells what is new. The last one has the verdicts.
func (s *show) tick(last bool) {
	s.mu.Lock()
	t := tick{At: s.since(ledger.Now()), State: s.state, Lanes: []*laneTick{}}
	if s.newSpeed {
		t.Speed, s.newSpeed = s.speed, false
	}
	if !last && t.State == stateEnded {
		t.State = stateEnding // only the last tick says so
	}
	s.mu.Unlock()
	for _, l := range s.lanes {
		if news := l.tick(last); news != nil {
			t.Lanes = append(t.Lanes, news)
		}
	}
	s.history.add(t, last)
}

// close removes what a show that is over leaves behind.
func (s *show) close() {
	_ = os.RemoveAll(s.dir) // ledgers of a show that nobody can ask about any more
}

func (s *show) json() json.RawMessage {
	s.mu.Lock()
	v := map[string]any{
		"id": s.id, "scenario": s.scenario.Name, "speed": s.speed, "consumers": s.consumers, "seconds": s.seconds,
		"state": s.state, "startedAt": s.started.Format(time.RFC3339), "at": s.since(ledger.Now()),
	}
	s.mu.Unlock()
	var lanes []any
	for _, l := range s.lanes {
		lanes = append(lanes, l.json())
	}
	v["lanes"] = lanes
	b, err := json.Marshal(v)
	if err != nil { // all of it is ours
		return json.RawMessage("null")
	}
	return b
}
