package door

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"queuelab/app/sale"
)

var (
	// ErrExpired says that a token was ours, and that its time is over.
	ErrExpired = errors.New("the token has expired")
	// ErrChanged says that a token is of an account as it was before.
	ErrChanged = errors.New("the password or the role of the account was changed since")
)

// Session is somebody who has logged in.
type Session struct {
	User    string
	Role    Role
	Expires time.Time
}

// Sessions are bearer tokens. Nothing is kept of them, so one is good until it
// expires, or until its account changes.
type Sessions struct {
	Keys *Keys
	TTL  time.Duration
	// Changes are those of the accounts; nil: there are no accounts, or a token
	// outlives their changes.
	Changes *Changes
}

const useSession = "session2" // the first one knew nothing of changes

// Issue makes a token for an account as it is now.
func (s *Sessions) Issue(a Account) (string, Session) {
	n := Session{User: a.User, Role: a.Role, Expires: time.Now().Add(s.TTL).Truncate(time.Second)}
	return s.Keys.Seal(useSession, string(a.Role)+" "+strconv.FormatInt(n.Expires.Unix(), 10)+" "+a.Stamp()+" "+a.User), n
}

// Read tells whose a token is; ErrToken, ErrExpired or ErrChanged otherwise.
func (s *Sessions) Read(token string) (Session, error) {
	said, err := s.Keys.Open(useSession, token)
	if err != nil {
		return Session{}, err
	}
	role, rest, _ := strings.Cut(said, " ")
	until, rest, _ := strings.Cut(rest, " ")
	stamp, user, _ := strings.Cut(rest, " ")
	expires, err := strconv.ParseInt(until, 10, 64)
	if err != nil || !Role(role).Known() || sale.CheckUser(user) != nil {
		return Session{}, ErrToken
	}
	n := Session{User: user, Role: Role(role), Expires: time.Unix(expires, 0)}
	if !time.Now().Before(n.Expires) {
		return Session{}, ErrExpired
	}
	if !s.Changes.stands(user, stamp) {
		return Session{}, ErrChanged
	}
	return n, nil
}

// Paths are purchase tokens: one buyer's way to buy one voucher, for a short
// time. They say that it was asked for after the sale had begun, no more.
type Paths struct {
	Keys *Keys
	TTL  time.Duration
}

const usePath = "path"

// Issue makes a purchase token, and says when it ends.
func (p *Paths) Issue(user string, voucher sale.ID) (string, time.Time) {
	expires := time.Now().Add(p.TTL)
	return p.Keys.Seal(usePath, voucher.String()+" "+strconv.FormatInt(expires.UnixMilli(), 10)+" "+user), expires
}

// Check is nil for a purchase token of this buyer for this voucher; ErrToken or
// ErrExpired otherwise.
func (p *Paths) Check(token, user string, voucher sale.ID) error {
	said, err := p.Keys.Open(usePath, token)
	if err != nil {
		return err
	}
	id, rest, _ := strings.Cut(said, " ")
	until, of, _ := strings.Cut(rest, " ")
	expires, err := strconv.ParseInt(until, 10, 64)
	if err != nil || of != user || id != voucher.String() {
		return ErrToken
	}
	if time.Now().UnixMilli() >= expires {
		return ErrExpired
	}
	return nil
}
