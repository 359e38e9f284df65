package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
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
	// stale is how old it may be before who reads waits for something newer, a
	// moment at most. While the database does not answer it may be of any age: the
	// gate has the last word on who may buy.
	stale = 10 * time.Second
	// packFrom is the size in bytes from which an answer is packed.
	packFrom = 1 << 10
	// pageLen is how many vouchers a page of the list has.
	pageLen = 200
)

// shelf is where vouchers are read: everybody who looks sees the same, so that
// one look a second is enough, however many look. On it are all whose sale is not
// over, and the newest of the others; older is for the rest.
type shelf struct {
	list func(context.Context) ([]sale.Voucher, error)
	older

	shown   atomic.Pointer[display]
	changed atomic.Int64 // counts what this instance did to vouchers

	mu     sync.Mutex
	asking *asking   // nil: nobody asks
	asked  time.Time // when the last look ended
	known  int64     // what changed was when it began
	err    error     // what was wrong with it
}

// asking is a look that goes on, for all who wait for done.
type asking struct {
	began time.Time
	done  chan struct{}
}

// display is how the vouchers are shown.
type display struct {
	at      time.Time
	changed int64 // see shelf
	of      map[sale.ID]*shownVoucher
	order   []*shownVoucher
	pages   []listPage
}

type shownVoucher struct {
	sale.Voucher
	content
	rank int // 0: open, 1: yet to open, 2: over
}

// before is the order of the list: what is open first, and of that the newest.
func (v *shownVoucher) before(rank int, id sale.ID) int {
	return cmp.Or(cmp.Compare(v.rank, rank), cmp.Compare(id, v.ID))
}

// listPage is a part of the list, made once somebody asks for it.
type listPage struct {
	once sync.Once
	content
	err error
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

func showVoucher(v sale.Voucher) (*shownVoucher, error) {
	body, err := json.Marshal(voucherOf(v))
	if err != nil {
		return nil, fmt.Errorf("show voucher %s: %w", v.ID, err)
	}
	a, err := contentOf(body)
	return &shownVoucher{Voucher: v, content: a}, err
}

// look returns what is shown, not older than fresh where that can be had. Nobody
// waits for a database that does not answer, unless there is nothing to show yet.
func (s *shelf) look(ctx context.Context) (*display, error) {
	for {
		d := s.shown.Load()
		late := d == nil || d.changed != s.changed.Load()
		if !late && time.Since(d.at) < fresh {
			return d, nil
		}
		q, err := s.ask(ctx)
		switch {
		case d == nil && q == nil:
			return nil, err
		case d == nil:
			select {
			case <-ctx.Done():
				return nil, fmt.Errorf("read the vouchers: %w", ctx.Err())
			case <-q.done:
			}
			continue
		case q == nil || err != nil || !late && time.Since(d.at) < stale:
			return d, nil //nolint:nilerr // what is shown outlives a database that does not answer
		}
		timer := time.NewTimer(fresh - time.Since(q.began))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-q.done:
			timer.Stop()
			continue
		}
		timer.Stop()
		return d, nil
	}
}

// ask begins a look, or joins the one that goes on; nil: the last one is good for
// a while. The error is what was wrong with that.
func (s *shelf) ask(ctx context.Context) (*asking, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking != nil {
		return s.asking, s.err
	}
	changed := s.changed.Load()
	if time.Since(s.asked) < fresh && changed == s.known {
		return nil, s.err
	}
	q := &asking{began: time.Now(), done: make(chan struct{})}
	s.asking, s.known = q, changed
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		d, err := s.read(ctx, changed)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			s.shown.Store(d)
		}
		s.asking, s.asked, s.err = nil, time.Now(), err
		close(q.done)
	}()
	return q, s.err
}

func (s *shelf) read(ctx context.Context, changed int64) (*display, error) {
	began := time.Now()
	vs, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	var before map[sale.ID]*shownVoucher
	if last := s.shown.Load(); last != nil {
		before = last.of
	}
	d := &display{at: began, changed: changed, of: make(map[sale.ID]*shownVoucher, len(vs)), order: make([]*shownVoucher, 0, len(vs))}
	for _, v := range vs {
		shown := &shownVoucher{Voucher: v}
		if same := before[v.ID]; same != nil && same.Voucher == v {
			shown.content = same.content
		} else if shown, err = showVoucher(v); err != nil {
			return nil, err
		}
		switch {
		case !began.Before(v.End):
			shown.rank = 2
		case began.Before(v.Opens()):
			shown.rank = 1
		}
		d.of[v.ID] = shown
		d.order = append(d.order, shown)
	}
	slices.SortFunc(d.order, func(a, b *shownVoucher) int { return a.before(b.rank, b.ID) })
	d.pages = make([]listPage, max(1, (len(d.order)+pageLen-1)/pageLen))
	return d, nil
}

// page is a page of the list, and where the next one begins; "": it is the last.
// after is where the one before ended, so that what moves meanwhile is rather
// shown twice than not at all.
func (d *display) page(after string) (a content, next string, err error) {
	n := 0
	if after != "" {
		rank, id, _ := strings.Cut(after, "-")
		last, err := sale.ParseID(id)
		if err != nil || len(rank) != 1 || rank < "0" || rank > "2" {
			return a, "", failure(fiber.StatusBadRequest, "invalid", "after is not one that a list gave: begin again without it")
		}
		at, on := slices.BinarySearchFunc(d.order, last, func(v *shownVoucher, last sale.ID) int { return v.before(int(rank[0]-'0'), last) })
		if on {
			at++
		}
		n = min(at/pageLen, len(d.pages)-1)
	}
	of := d.order[n*pageLen : min((n+1)*pageLen, len(d.order))]
	if n < len(d.pages)-1 {
		last := of[len(of)-1]
		next = strconv.Itoa(last.rank) + "-" + last.ID.String()
	}
	p := &d.pages[n]
	p.once.Do(func() {
		bodies := make([][]byte, len(of))
		for i, v := range of {
			bodies[i] = v.body
		}
		p.content, p.err = contentOf(append(append([]byte("["), bytes.Join(bodies, []byte(","))...), ']'))
	})
	return p.content, next, p.err
}

// find returns one voucher: an *sale.Error where there is none, or where it
// cannot be looked up just now. address is who asks.
func (s *shelf) find(ctx context.Context, address string, id sale.ID) (*shownVoucher, error) {
	d, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	if v, ok := d.of[id]; ok {
		return v, nil
	}
	return s.older.find(ctx, address, id)
}

// send answers with a content that everybody may share for a second.
func send(c *fiber.Ctx, a content) error {
	c.Set(fiber.HeaderETag, a.etag)
	c.Set(fiber.HeaderCacheControl, "public, max-age=1, stale-while-revalidate=5, stale-if-error=600")
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
	a, next, err := d.page(c.Query("after"))
	if err != nil {
		return err
	}
	if next != "" {
		c.Set(fiber.HeaderLink, `</api/vouchers?after=`+next+`>; rel="next"`)
	}
	if age := time.Since(d.at); age >= stale {
		c.Set(fiber.HeaderAge, strconv.Itoa(int(age.Seconds())))
	}
	return send(c, a)
}

func (s *Server) voucher(c *fiber.Ctx) error {
	id, err := sale.ParseID(c.Params("id"))
	if err != nil {
		return sale.NoVoucher()
	}
	ctx, cancel := timed(c)
	defer cancel()
	v, err := s.shelf.find(ctx, s.address(c), id)
	if err != nil {
		return err
	}
	return send(c, v.content)
}
