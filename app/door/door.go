// Package door is what stands before the sale: who somebody is (accounts,
// bearer tokens), how often they may ask (limits by user and by address), and
// the way to a voucher (a purchase token, before it perhaps a captcha). It holds
// no stock: whoever gets through the door may still be refused by the gate.
//
// # Keys in Redis
//
// Where several instances share limits and used tickets, these keys are beside
// those of the gate, each with an expiry of its own:
//
//	seckill:limit:NAME:{KEY}  string  when the next request would be due, in µs of Redis' clock
//	seckill:once:{NONCE}      string  a captcha's ticket that was used
//	seckill:known:{USER}      zset    addresses from which an account logged in
//
// # What a captcha of this kind stops
//
// Scripts that nobody wrote for this page, and the rest of them for as long as
// it takes to write one: any program for reading text reads five drawn digits,
// and the sum in words, which is there for those who cannot see the picture, is
// no riddle at all. What is left is that a purchase token costs one more round
// trip, bound to the buyer, and that people answer at different moments, which
// flattens the first second. It does not tell people from programs.
package door

import (
	"context"
	"errors"
	"time"
)

// Role is what somebody may do.
type Role string

const (
	Buyer    Role = "buyer"
	Operator Role = "operator"
)

// Known reports whether there is such a role.
func (r Role) Known() bool { return r == Buyer || r == Operator }

// Account is somebody with a password.
type Account struct {
	User    string
	Hash    string // see Passwords
	Role    Role
	Created time.Time
}

var (
	// ErrTaken says that the name of a new account is somebody's.
	ErrTaken = errors.New("the name is taken")
	// ErrNoAccount says that nobody has the name.
	ErrNoAccount = errors.New("no such account")
	// ErrBusy says that too many ask at once; nothing was decided.
	ErrBusy = errors.New("too many ask at once")
)

// Accounts is what the door needs of the database.
type Accounts interface {
	// AddAccount fails with ErrTaken where the name is somebody's.
	AddAccount(ctx context.Context, a Account) error
	// PutAccount adds an account, or gives the one of that name another password
	// and role: then its tokens of before are refused, see Changes.
	PutAccount(ctx context.Context, a Account) error
	// Account fails with ErrNoAccount where there is none.
	Account(ctx context.Context, user string) (Account, error)
	// ChangedAccounts lists those that were put less than within ago, by the
	// database's clock.
	ChangedAccounts(ctx context.Context, within time.Duration) ([]Account, error)
}

// Door is what a server has of all this; what is nil is off.
type Door struct {
	Sessions *Sessions // needed
	Accounts Accounts  // nil: everybody is whom they say, without a password
	// Passwords is needed with Accounts.
	Passwords *Passwords
	Proxies   Proxies // whose X-Forwarded-For is believed
	// Users and Addresses bound requests by buyer and by address.
	Users, Addresses Limiter
	// Names, Guesses and Callers bound tries to log in: by name, by name and
	// address, and by address.
	Names, Guesses, Callers Limiter
	// Known are those whom the limit of a name does not keep out; nil: nobody.
	Known    Known
	Paths    *Paths
	Captcha  *Captcha  // needs Paths
	Provider *Provider // nil: only operators tell of payments
}
