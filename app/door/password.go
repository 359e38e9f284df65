package door

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// The bounds of a password, in bytes.
const (
	MinPassword = 8
	MaxPassword = 128
)

// CheckPassword says what is wrong with a new password, if anything.
func CheckPassword(user, password string) error {
	switch {
	case len(password) < MinPassword || len(password) > MaxPassword:
		return fmt.Errorf("a password has %d to %d bytes", MinPassword, MaxPassword)
	case !utf8.ValidString(password):
		return errors.New("the password is not UTF-8 text")
	case strings.EqualFold(password, user):
		return errors.New("the password is the user's name")
	}
	return nil
}

// cost is what one try of a password costs: argon2id's parameters.
type cost struct {
	memory  uint32 // KiB
	time    uint32 // passes
	threads uint8
}

func defaultCost() cost { return cost{memory: 19 << 10, time: 2, threads: 1} }

const (
	saltLen = 16
	hashLen = 32
	// atOnce bounds the hashes in the making: each takes 19 MiB and a core.
	atOnce = 2
	// inLine bounds those who wait for one.
	inLine = 64
)

// Passwords hashes passwords with argon2id, at most two at once. It is safe for
// concurrent use.
type Passwords struct {
	cost    cost
	dummy   hash
	running chan struct{}
	waiting atomic.Int64
}

// NewPasswords makes Passwords.
func NewPasswords() *Passwords {
	p := &Passwords{cost: defaultCost(), running: make(chan struct{}, atOnce)}
	p.dummy = hash{cost: p.cost, salt: make([]byte, saltLen), sum: make([]byte, hashLen)}
	return p
}

// hash is a password's hash, as it is stored: the parameters are in it, so that
// they can change for new ones.
type hash struct {
	cost
	salt, sum []byte
}

func (h hash) String() string {
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.time, h.threads,
		enc.EncodeToString(h.salt), enc.EncodeToString(h.sum))
}

var errHash = errors.New("the stored password hash is not one of ours")

// parseHash reads what String wrote, and nothing that would cost much more than
// what we write ourselves: at most 64 MiB, 10 passes, 4 threads.
func parseHash(s string) (hash, error) {
	p := strings.Split(s, "$")
	if len(s) > 256 || len(p) != 6 || p[0] != "" || p[1] != "argon2id" || p[2] != "v="+strconv.Itoa(argon2.Version) {
		return hash{}, errHash
	}
	var h hash
	var n [3]uint64
	fields := strings.Split(p[3], ",")
	if len(fields) != len(n) {
		return hash{}, errHash
	}
	for i, want := range []struct {
		prefix string
		max    uint64
	}{{"m=", 64 << 10}, {"t=", 10}, {"p=", 4}} {
		digits, ok := strings.CutPrefix(fields[i], want.prefix)
		v, err := strconv.ParseUint(digits, 10, 32)
		if !ok || err != nil || v < 1 || v > want.max || strconv.FormatUint(v, 10) != digits {
			return hash{}, errHash
		}
		n[i] = v
	}
	h.cost = cost{memory: uint32(n[0]), time: uint32(n[1]), threads: uint8(n[2])}
	enc := base64.RawStdEncoding.Strict()
	var err1, err2 error
	h.salt, err1 = enc.DecodeString(p[4])
	h.sum, err2 = enc.DecodeString(p[5])
	if err1 != nil || err2 != nil || len(h.salt) < saltLen || len(h.sum) != hashLen {
		return hash{}, errHash
	}
	return h, nil
}

// take waits for a place, and returns what gives it back.
func (p *Passwords) take(ctx context.Context) (func(), error) {
	if p.waiting.Add(1) > inLine {
		p.waiting.Add(-1)
		return nil, ErrBusy
	}
	defer p.waiting.Add(-1)
	select {
	case p.running <- struct{}{}:
		return func() { <-p.running }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
	}
}

func (p *Passwords) sum(ctx context.Context, c cost, salt []byte, password string) ([]byte, error) {
	done, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return argon2.IDKey([]byte(password), salt, c.time, c.memory, c.threads, hashLen), nil
}

// Hash makes what is stored of a password; ErrBusy where too many want one.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	h := hash{cost: p.cost, salt: make([]byte, saltLen)}
	if _, err := rand.Read(h.salt); err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	var err error
	if h.sum, err = p.sum(ctx, h.cost, h.salt, password); err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return h.String(), nil
}

// Verify reports whether the password is that of the stored hash; ErrBusy where
// too many ask. An empty hash is nobody's: no password is right, and to say so
// costs as much as for somebody's.
func (p *Passwords) Verify(ctx context.Context, stored, password string) (bool, error) {
	h := p.dummy
	if stored != "" {
		var err error
		if h, err = parseHash(stored); err != nil {
			return false, err
		}
	}
	got, err := p.sum(ctx, h.cost, h.salt, password)
	if err != nil {
		return false, fmt.Errorf("check a password: %w", err)
	}
	same := subtle.ConstantTimeCompare(got, h.sum) == 1
	return same && stored != "", nil
}
