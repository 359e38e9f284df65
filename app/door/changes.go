package door

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"sync"
	"time"
)

const (
	// lookEvery is the pause between two looks for changed accounts. With a look's
	// time-out it makes the 5 seconds that the docs promise.
	lookEvery   = 2 * time.Second
	lookTimeout = 2 * time.Second
	// lookSoon bounds how often a token that is to be refused has us look again.
	lookSoon = 200 * time.Millisecond
)

// Stamp is a few characters that change with the account's password and role, and
// tell nothing of them.
func (a Account) Stamp() string {
	sum := sha256.Sum256([]byte(string(a.Role) + " " + a.Hash))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// Changes knows the accounts that got another password or role lately, so that
// the tokens of before can be refused without a look into the database for each
// request. A change is known here within 5 seconds, for as long as the database
// answers, and later only while it does not. It is safe for concurrent use.
type Changes struct {
	Accounts Accounts
	Within   time.Duration // how long a token lasts: whatever changed before that is forgotten
	Log      *slog.Logger

	mu     sync.RWMutex
	at     time.Time         // of the last look
	stamps map[string]string // by user
	one    sync.Mutex        // one looks at a time
}

// Run looks until ctx ends.
func (c *Changes) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for failed := false; ; {
		err := c.Look(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			c.Log.Warn("tokens are not refused whose account changes now", "error", err)
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look asks the database now. It is to be called before the first token is read.
func (c *Changes) Look(ctx context.Context) error {
	c.one.Lock()
	defer c.one.Unlock()
	return c.look(ctx)
}

func (c *Changes) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	changed, err := c.Accounts.ChangedAccounts(ctx, c.Within)
	if err != nil {
		return err
	}
	stamps := make(map[string]string, len(changed))
	for _, a := range changed {
		stamps[a.User] = a.Stamp()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.stamps = time.Now(), stamps
	return nil
}

// stands reports whether an account is still as a token says, as far as it is
// known here. A token may also be newer than our last look.
func (c *Changes) stands(user, stamp string) bool {
	if c == nil || c.last(user, stamp) {
		return true
	}
	c.one.Lock()
	defer c.one.Unlock()
	c.mu.RLock()
	old := time.Since(c.at) >= lookSoon
	c.mu.RUnlock()
	if old {
		// A database that is away leaves us with what we know.
		_ = c.look(context.Background())
	}
	return c.last(user, stamp)
}

func (c *Changes) last(user, stamp string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	now, changed := c.stamps[user]
	return !changed || now == stamp
}
