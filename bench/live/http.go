package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"queuelab/bench/live/page"
	"queuelab/bench/trial"
)

// mostBody is the most bytes of a request's body.
const mostBody = 64 << 10

// refusal is an error with a status and a code, for the page.
type refusal struct {
	status int
	code   string
	text   string
}

func (r refusal) Error() string { return r.text }

func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text, "code": code}) // whoever asked may be gone
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // likewise
}

// handler is a request that may fail.
type handler func(w http.ResponseWriter, r *http.Request) error

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := h(w, r)
	var no refusal
	var not unfit
	var large *http.MaxBytesError
	switch {
	case err == nil:
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the request is larger than %d bytes", mostBody))
	case errors.As(err, &no):
		refuse(w, no.status, no.code, no.text)
	case errors.As(err, &not):
		refuse(w, http.StatusConflict, "unfit_strike", not.Error())
	case errors.Is(err, ErrBusy):
		refuse(w, http.StatusConflict, "show_runs", err.Error())
	default:
		refuse(w, http.StatusInternalServerError, "failed", err.Error())
	}
}

func (s *Server) routes() http.Handler {
	m := http.NewServeMux()
	m.Handle("GET /{$}", handler(s.getPage))
	m.Handle("GET /api/about", handler(s.getAbout))
	m.Handle("POST /api/shows", handler(s.postShow))
	m.Handle("GET /api/shows/current", s.of(s.getShow))
	m.Handle("DELETE /api/shows/current", s.of(s.deleteShow))
	m.Handle("PATCH /api/shows/current", s.of(s.patchShow))
	m.Handle("POST /api/shows/current/strikes", s.of(s.postStrike))
	m.Handle("GET /api/shows/current/events", s.of(s.getEvents))
	m.Handle("GET /api/shows/current/messages/{id}", s.of(s.getMessage))
	m.Handle("GET /api/shows/current/recording", s.of(s.getRecording))
	m.Handle("/", handler(func(_ http.ResponseWriter, r *http.Request) error {
		return refusal{http.StatusNotFound, "bad_request", fmt.Sprintf("there is no %s %s", r.Method, r.URL.Path)}
	}))
	return m
}

// of is for requests about the current show.
func (s *Server) of(h func(w http.ResponseWriter, r *http.Request, v *show) error) http.Handler {
	return handler(func(w http.ResponseWriter, r *http.Request) error {
		v := s.current()
		if v == nil {
			return refusal{http.StatusNotFound, "no_show", "no show was begun yet"}
		}
		return h(w, r, v)
	})
}

func read(w http.ResponseWriter, r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("there is more after its end")
		}
	}
	var large *http.MaxBytesError
	if err == nil || errors.As(err, &large) {
		return err
	}
	return refusal{http.StatusBadRequest, "bad_request", "the request's body: " + err.Error()}
}

func (s *Server) getPage(w http.ResponseWriter, _ *http.Request) error {
	b, err := page.HTML(nil)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b) // whoever asked may be gone
	return nil
}

func (s *Server) getAbout(w http.ResponseWriter, r *http.Request) error {
	v := s.about(r)
	v["show"] = nil
	if show := s.current(); show != nil {
		v["show"] = show.json()
	}
	answer(w, http.StatusOK, v)
	return nil
}

func (s *Server) about(r *http.Request) map[string]any {
	type setting struct {
		Name      string  `json:"name"`
		Backend   string  `json:"backend"`
		Kind      string  `json:"kind"`
		Promise   string  `json:"promise"`
		Guarantee *string `json:"guarantee"`
		Available bool    `json:"available"`
		Why       string  `json:"why"`
	}
	settings := []setting{}
	for _, set := range s.options.Settings {
		why := s.why(r.Context(), set)
		settings = append(settings, setting{set.String(), set.Backend, kindOf(set), set.Promise, s.guarantee(set.String()), why == "", why})
	}
	database := map[string]string{"kind": "postgres", "why": s.why(r.Context(), trial.Setting{Broker: "postgres"})}
	if database["why"] != "" {
		database["kind"] = "sqlite"
	}
	return map[string]any{
		"version": s.options.Version, "started": time.Now().Format(time.RFC3339), "database": database,
		"limits": map[string]any{
			"lanes": maxLanes, "consumers": maxConsumers, "seconds": maxSeconds, "events": maxEvents, "messages": maxMessages,
			"speeds": []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000},
		},
		"scenarios": scenarios(), "settings": settings, "strikes": buttons(),
	}
}

// check completes a request, or says what is wrong with it.
func (s *Server) check(r request) (request, scenario, []trial.Setting, error) {
	bad := func(code, format string, args ...any) (request, scenario, []trial.Setting, error) {
		return r, scenario{}, nil, refusal{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
	}
	all := scenarios()
	i := slices.IndexFunc(all, func(sc scenario) bool { return sc.Name == r.Scenario })
	if i < 0 {
		return bad("unknown_scenario", "unknown scenario %q", r.Scenario)
	}
	sc := all[i]
	if r.Speed == 0 {
		r.Speed = sc.Speed
	}
	if r.Consumers == 0 {
		r.Consumers = sc.Consumers
	}
	if r.Seconds == 0 {
		r.Seconds = sc.Seconds
	}
	switch {
	case len(r.Settings) == 0:
		return bad("bad_request", "no setting was chosen: choose one to %d", maxLanes)
	case len(r.Settings) > maxLanes:
		return bad("too_many_lanes", "%d settings: at most %d are shown side by side", len(r.Settings), maxLanes)
	case !(r.Speed >= 1 && r.Speed <= maxSpeed):
		return bad("bad_request", "speed %g: 1 to %d messages a second are allowed", r.Speed, maxSpeed)
	case r.Consumers < 1 || r.Consumers > maxConsumers:
		return bad("bad_request", "%d consumers: 1 to %d are allowed", r.Consumers, maxConsumers)
	case r.Seconds < 1 || r.Seconds > maxSeconds:
		return bad("bad_request", "%d seconds: 1 to %d are allowed", r.Seconds, maxSeconds)
	}
	var settings []trial.Setting
	for n, name := range r.Settings {
		i := slices.IndexFunc(s.options.Settings, func(set trial.Setting) bool { return set.String() == name })
		if i < 0 {
			return bad("unknown_setting", "unknown setting %q", name)
		}
		if slices.Contains(r.Settings[:n], name) {
			return bad("bad_request", "the setting %s is chosen twice", name)
		}
		settings = append(settings, s.options.Settings[i])
	}
	return r, sc, settings, nil
}

func (s *Server) postShow(w http.ResponseWriter, r *http.Request) error {
	var asked request
	if err := read(w, r, &asked); err != nil {
		return err
	}
	asked, sc, settings, err := s.check(asked)
	if err != nil {
		return err
	}
	for _, set := range settings {
		if why := s.why(r.Context(), set); why != "" {
			return refusal{http.StatusConflict, "unavailable_setting", fmt.Sprintf("%s cannot be had: %s", set, why)}
		}
	}
	v, err := s.begin(sc, settings, asked)
	if err != nil {
		return err
	}
	answer(w, http.StatusCreated, v.json())
	return nil
}

func (s *Server) getShow(w http.ResponseWriter, _ *http.Request, v *show) error {
	answer(w, http.StatusOK, v.json())
	return nil
}

func (s *Server) deleteShow(w http.ResponseWriter, r *http.Request, v *show) error {
	status := http.StatusAccepted
	select {
	case <-v.ending:
		status = http.StatusOK
	default:
	}
	answer(w, status, map[string]string{"state": v.end(whyStopped, r.URL.Query().Get("now") == "1")})
	return nil
}

func (s *Server) patchShow(w http.ResponseWriter, r *http.Request, v *show) error {
	var asked struct {
		Speed float64 `json:"speed"`
	}
	if err := read(w, r, &asked); err != nil {
		return err
	}
	if !(asked.Speed >= 1 && asked.Speed <= maxSpeed) {
		return refusal{http.StatusBadRequest, "bad_request", fmt.Sprintf("speed %g: 1 to %d messages a second are allowed", asked.Speed, maxSpeed)}
	}
	if err := v.setSpeed(r.Context(), asked.Speed); err != nil {
		return err
	}
	answer(w, http.StatusOK, v.json())
	return nil
}

func (s *Server) postStrike(w http.ResponseWriter, r *http.Request, v *show) error {
	var asked struct {
		Lane    int    `json:"lane"`
		Strike  string `json:"strike"`
		Process uint16 `json:"process"`
	}
	if err := read(w, r, &asked); err != nil {
		return err
	}
	all := buttons()
	i := slices.IndexFunc(all, func(b button) bool { return b.Name == asked.Strike })
	switch {
	case i < 0:
		return refusal{http.StatusBadRequest, "unknown_strike", fmt.Sprintf("unknown strike %q", asked.Strike)}
	case asked.Lane < 0 || asked.Lane >= len(v.lanes):
		return refusal{http.StatusBadRequest, "bad_request", fmt.Sprintf("lane %d: there are 0 to %d", asked.Lane, len(v.lanes)-1)}
	}
	// A strike is not undone by a page that does not wait for its answer.
	a, err := v.lanes[asked.Lane].press(v.ctx, all[i], asked.Process)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, a)
	return nil
}

func (s *Server) getMessage(w http.ResponseWriter, r *http.Request, v *show) error {
	found, err := v.story(r.PathValue("id"))
	var none unfit
	if errors.As(err, &none) || err != nil && strings.HasPrefix(err.Error(), "message id") {
		return refusal{http.StatusNotFound, "unknown_message", err.Error()}
	}
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, found)
	return nil
}

func (s *Server) getRecording(w http.ResponseWriter, r *http.Request, v *show) error {
	about := s.about(r)
	delete(about, "show")
	ticks, _, _ := v.history.after(0)
	b, err := json.Marshal(map[string]any{
		"show": v.json(), "about": about, "recordedAt": time.Now().Format(time.RFC3339), "ticks": ticks, "stories": v.stories(),
	})
	if err != nil {
		return err
	}
	name, kind := "queuelab-"+v.scenario.Name, "application/json"
	if r.URL.Query().Get("format") != "json" {
		if b, err = page.HTML(b); err != nil {
			return err
		}
		name, kind = name+".html", "text/html; charset=utf-8"
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(b) // whoever asked may be gone
	return nil
}

// heartbeat keeps a stream from looking dead.
const heartbeat = 10 * time.Second

func (s *Server) getEvents(w http.ResponseWriter, r *http.Request, v *show) error {
	n := 0
	for _, from := range []string{r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")} {
		if at, err := strconv.Atoi(from); err == nil && n == 0 {
			n = at
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	v.history.watch(1)
	defer v.history.watch(-1)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		some, over, more := v.history.after(n)
		var err error
		for _, t := range some {
			n++
			_, err = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", n, t)
		}
		if over {
			_, _ = io.WriteString(w, "event: end\ndata: {}\n\n") // the last word, heard or not
		}
		_ = out.SetWriteDeadline(time.Now().Add(heartbeat)) // a reader that hangs is one that is gone
		if err = errors.Join(err, out.Flush()); err != nil || over {
			return nil // a reader that is gone is no failure
		}
		select {
		case <-more:
		case <-beat.C:
			_, _ = io.WriteString(w, ": \n\n") // the flush says whether it is heard
		case <-r.Context().Done():
			return nil
		case <-s.closing:
			return nil
		}
	}
}
