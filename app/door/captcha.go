package door

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	crand "crypto/rand"

	"queuelab/app/sale"
)

// When says when a captcha is asked for.
type When string

const (
	Always When = "on"
	Auto   When = "auto" // while more paths are asked for than Above
)

// calm is how long a captcha is still asked for after the last busy second.
const calm = 10 * time.Second

// Captcha asks buyers to read five digits, or to add two numbers, before they
// get a purchase token. The package comment says what that stops.
type Captcha struct {
	When  When
	Above int // paths in a second, of this instance; for Auto
	Keys  *Keys
	Once  Once
	TTL   time.Duration // how long an answer may take

	mu     sync.Mutex
	second int64
	asked  int
	until  time.Time // the end of what was busy
}

// Needed counts one who asks for a path, and reports whether there is a captcha
// to solve.
func (c *Captcha) Needed() bool {
	if c.When == Always {
		return true
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := now.Unix(); s != c.second {
		c.second, c.asked = s, 0
	}
	if c.asked++; c.asked > c.Above {
		c.until = now.Add(calm)
	}
	return now.Before(c.until)
}

// Riddle is what a buyer is asked. Exactly one of Picture and Text is there.
type Riddle struct {
	Ticket  string // to be given back with the answer
	Picture []byte // a PNG of digits
	Text    string // a sum, for those who cannot see the picture
	Expires time.Time
}

const (
	useTicket = "captcha"
	useAnswer = "captcha answer"
	digits    = 5
)

// Ask makes a riddle for a buyer of a voucher. The ticket holds the answer only
// as a code that nobody can make without our key.
func (c *Captcha) Ask(user string, voucher sale.ID, inText bool) (Riddle, error) {
	r := Riddle{Expires: time.Now().Add(c.TTL)}
	var answer string
	if inText {
		a, b := 2+rand.IntN(18), 2+rand.IntN(18)
		r.Text, answer = fmt.Sprintf("%d + %d", a, b), strconv.Itoa(a+b)
	} else {
		answer = fmt.Sprintf("%0*d", digits, rand.IntN(100_000))
		var err error
		if r.Picture, err = draw(answer); err != nil {
			return Riddle{}, fmt.Errorf("draw a captcha: %w", err)
		}
	}
	nonce := crand.Text()
	r.Ticket = c.Keys.Seal(useTicket, strings.Join([]string{voucher.String(), strconv.FormatInt(r.Expires.UnixMilli(), 10),
		nonce, code(c.Keys.all[c.Keys.id], nonce, answer), user}, " "))
	return r, nil
}

// code is what a ticket says of its answer.
func code(key []byte, nonce, answer string) string {
	return strict.EncodeToString(mac(key, useAnswer, nonce+" "+answer)[:12])
}

// ErrAnswer says that a riddle was not solved, or by somebody else, too late or
// before; there must be another one.
var ErrAnswer = errors.New("the captcha was not solved")

// Check is nil once for a ticket with its answer. A wrong answer uses it up as
// well, so that nobody can try them all. ErrAnswer otherwise, or ErrBusy where
// it cannot be known whether the ticket was used.
func (c *Captcha) Check(ctx context.Context, ticket, answer, user string, voucher sale.ID) error {
	said, err := c.Keys.Open(useTicket, ticket)
	if err != nil {
		return ErrAnswer
	}
	p := strings.Split(said, " ")
	if len(p) != 5 || p[0] != voucher.String() || p[4] != user || len(answer) > 2*digits {
		return ErrAnswer
	}
	ms, err := strconv.ParseInt(p[1], 10, 64)
	left := time.Until(time.UnixMilli(ms))
	if err != nil || left <= 0 {
		return ErrAnswer
	}
	first, err := c.Once.First(ctx, p[2], left)
	if err != nil {
		return err
	}
	key, _, _ := strings.Cut(ticket, ".")
	if !first || !Same(p[3], code(c.Keys.all[key], p[2], strings.TrimSpace(answer))) {
		return ErrAnswer
	}
	return nil
}

// DataURL is the picture as it can stand in a page.
func (r Riddle) DataURL() string {
	if r.Picture == nil {
		return ""
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(r.Picture)
}
