package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"queuelab/app/sale"
)

const (
	// fresh is how old what readers see may be while the database answers.
	fresh = time.Second
	// stale is how old it may be while it does not, or is being asked.
	stale = 10 * time.Second
	// packFrom is the size in bytes from which an answer is packed.
	packFrom = 1 << 10
	// maxOld bounds the vouchers that are remembered besides the newest.
	maxOld = 256
)

// shelf is where vouchers are read: everybody who looks sees the same, so that
// one query a second is enough, however many look. A voucher that is not among
// the newest may cost one more.
type shelf struct {
	list func(context.Context) ([]sale.Voucher, error)
	one  func(context.Context, sale.ID) (sale.Voucher, error)

	shown   atomic.Pointer[display]
	changed atomic.Bool // by this instance, since the last query

	mu    sync.Mutex // held while the database is asked for the newest
	asked time.Time  // when it last answered
	err   error      // what was wrong with the answer

	oldMu    sync.Mutex // held while it is asked for an older one
	old      map[sale.ID]oldVoucher
	oldAsked time.Time
}

// display is how the newest vouchers are shown.
type display struct {
	at  time.Time
	all content
	of  map[sale.ID]shownVoucher
}

type shownVoucher struct {
	sale.Voucher
	content
}

// oldVoucher is what the database said of a voucher, and when.
type oldVoucher struct {
	shownVoucher
	err error
	at  time.Time
}

// content is an answer's body, ready to be sent.
type content struct {
	body   []byte
	packed []byte // nil: too small to be worth it
	etag   string
}

func contentOf(body []byte) (content, error) {
	sum := sha256.Sum256(body)
	// Weak, because packed and plain are the same to a reader.
	a := content{body: body, etag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
	if len(body) < packFrom {
		return a, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(body); err != nil {
		return a, fmt.Errorf("pack: %w", err)
	}
	if err := z.Close(); err != nil {
		return a, fmt.Errorf("pack: %w", err)
	}
	a.packed = b.Bytes()
	return a, nil
}

func showVoucher(v sale.Voucher) (shownVoucher, error) {
	body, err := json.Marshal(voucherOf(v))
	if err != nil {
		return shownVoucher{}, fmt.Errorf("show voucher %s: %w", v.ID, err)
	}
	a, err := contentOf(body)
	return shownVoucher{v, a}, err
}

// look returns what is shown, not older than fresh where that can be had.
func (s *shelf) look(ctx context.Context) (*display, error) {
	d := s.shown.Load()
	usable := func(within time.Duration) bool { return d != nil && time.Since(d.at) < within }
	if usable(fresh) && !s.changed.Load() {
		return d, nil
	}
	if !usable(stale) || s.changed.Load() {
		s.mu.Lock()
	} else if !s.mu.TryLock() {
		return d, nil // somebody asks already
	}
	defer s.mu.Unlock()
	if s.changed.Swap(false) || time.Since(s.asked) >= fresh {
		if next, err := s.ask(ctx); err == nil {
			s.shown.Store(next)
			s.err = nil
		} else {
			s.err = err
		}
		s.asked = time.Now()
	}
	if d = s.shown.Load(); s.err != nil && !usable(stale) {
		return nil, s.err
	}
	return d, nil
}

func (s *shelf) ask(ctx context.Context) (*display, error) {
	began := time.Now()
	vs, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	d := &display{at: began, of: make(map[sale.ID]shownVoucher, len(vs))}
	bodies := make([][]byte, len(vs))
	for i, v := range vs {
		shown, err := showVoucher(v)
		if err != nil {
			return nil, err
		}
		d.of[v.ID], bodies[i] = shown, shown.body
	}
	d.all, err = contentOf(append(append([]byte("["), bytes.Join(bodies, []byte(","))...), ']'))
	return d, err
}

// find returns one voucher: an *sale.Error where there is none, or where it
// cannot be looked up just now.
func (s *shelf) find(ctx context.Context, id sale.ID) (shownVoucher, error) {
	d, err := s.look(ctx)
	if err != nil {
		return shownVoucher{}, err
	}
	if v, ok := d.of[id]; ok {
		return v, nil
	}
	s.oldMu.Lock()
	defer s.oldMu.Unlock()
	known, ok := s.old[id]
	if ok && time.Since(known.at) < fresh {
		return known.shownVoucher, known.err
	}
	if time.Since(s.oldAsked) < fresh {
		if ok && time.Since(known.at) < stale {
			return known.shownVoucher, known.err
		}
		return shownVoucher{}, &sale.Error{Code: sale.CodeBusy, Message: "too many ask for old vouchers, try again in a moment", RetryAfter: fresh}
	}
	v, err := s.one(ctx, id)
	if err != nil && sale.CodeOf(err) != sale.CodeNotFound {
		s.oldAsked = time.Now()
		return shownVoucher{}, err
	}
	known = oldVoucher{err: err}
	if err == nil {
		if known.shownVoucher, err = showVoucher(v); err != nil {
			return shownVoucher{}, err
		}
	}
	if s.old == nil || len(s.old) >= maxOld {
		s.old = map[sale.ID]oldVoucher{}
	}
	s.oldAsked = time.Now()
	known.at = s.oldAsked
	s.old[id] = known
	return known.shownVoucher, known.err
}

// send answers with a content that everybody may share for a second.
func send(c *fiber.Ctx, a content) error {
	c.Set(fiber.HeaderETag, a.etag)
	c.Set(fiber.HeaderCacheControl, "public, max-age=1, stale-while-revalidate=5")
	c.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if matches(c.Get(fiber.HeaderIfNoneMatch), a.etag) {
		c.Status(fiber.StatusNotModified)
		return nil
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	if a.packed != nil && c.AcceptsEncodings("identity", "gzip") == "gzip" {
		c.Set(fiber.HeaderContentEncoding, "gzip")
		return c.Send(a.packed)
	}
	return c.Send(a.body)
}

// matches reads If-None-Match: tags with commas between, or a star.
func matches(header, etag string) bool {
	for header != "" {
		var tag string
		tag, header, _ = strings.Cut(header, ",")
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

func (s *Server) listVouchers(c *fiber.Ctx) error {
	ctx, cancel := timed(c)
	defer cancel()
	d, err := s.shelf.look(ctx)
	if err != nil {
		return err
	}
	return send(c, d.all)
}

func (s *Server) voucher(c *fiber.Ctx) error {
	id, err := sale.ParseID(c.Params("id"))
	if err != nil {
		return sale.NotFound("no such voucher")
	}
	ctx, cancel := timed(c)
	defer cancel()
	v, err := s.shelf.find(ctx, id)
	if err != nil {
		return err
	}
	return send(c, v.content)
}
