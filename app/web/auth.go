package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"queuelab/app/sale"
)

// MinKey is the fewest bytes of a key that signs tokens.
const MinKey = 32

// Tokens signs and reads bearer tokens: user and expiry, with HMAC-SHA256. It
// proves that we issued the token, not who asked for it: the login has no
// passwords yet.
type Tokens struct {
	key []byte
	ttl time.Duration
	now func() time.Time
}

// NewTokens makes Tokens. A nil key is a random one, and then tokens end with
// the process.
func NewTokens(key []byte, ttl time.Duration) (*Tokens, error) {
	if key == nil {
		key = make([]byte, MinKey)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("make a token key: %w", err)
		}
	}
	if len(key) < MinKey {
		return nil, fmt.Errorf("the token key has %d bytes, want at least %d", len(key), MinKey)
	}
	return &Tokens{key: key, ttl: ttl, now: time.Now}, nil
}

type claims struct {
	User    string `json:"sub"`
	Expires int64  `json:"exp"` // Unix seconds
}

// Issue makes a token for a user, and says when it ends.
func (t *Tokens) Issue(user string) (token string, expires time.Time, err error) {
	expires = t.now().Add(t.ttl).Truncate(time.Second)
	payload, err := json.Marshal(claims{User: user, Expires: expires.Unix()})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("issue a token: %w", err)
	}
	enc := base64.RawURLEncoding
	return enc.EncodeToString(payload) + "." + enc.EncodeToString(t.sign(payload)), expires, nil
}

func (t *Tokens) sign(payload []byte) []byte {
	m := hmac.New(sha256.New, t.key)
	m.Write(payload)
	return m.Sum(nil)
}

var errToken = errors.New("the token is not valid")

// User reads a token.
func (t *Tokens) User(token string) (string, error) {
	p, s, ok := strings.Cut(token, ".")
	if !ok {
		return "", errToken
	}
	payload, err1 := base64.RawURLEncoding.DecodeString(p)
	mac, err2 := base64.RawURLEncoding.DecodeString(s)
	if err1 != nil || err2 != nil || !hmac.Equal(mac, t.sign(payload)) {
		return "", errToken
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil || sale.CheckUser(c.User) != nil {
		return "", errToken
	}
	if t.now().Unix() >= c.Expires {
		return "", errors.New("the token has expired, log in again")
	}
	return c.User, nil
}

// same compares secrets without telling by its time how much of them agrees.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return hmac.Equal(x[:], y[:])
}

func bearer(c *fiber.Ctx) string {
	h := c.Get(fiber.HeaderAuthorization)
	const prefix = "bearer "
	if len(h) > len(prefix) && strings.EqualFold(h[:len(prefix)], prefix) {
		return strings.TrimSpace(h[len(prefix):])
	}
	return ""
}

func (s *Server) operator(c *fiber.Ctx) bool {
	b := bearer(c)
	return b != "" && same(b, s.o.OperatorToken)
}

// user is who asks. The name is a copy: fiber's strings point into a buffer
// that the next request overwrites, and this one goes into queue and gate.
func (s *Server) user(c *fiber.Ctx) (string, error) {
	if b := bearer(c); b != "" {
		u, err := s.o.Tokens.User(b)
		if err != nil {
			return "", failure(fiber.StatusUnauthorized, "unauthorized", err.Error())
		}
		return u, nil
	}
	if s.o.TrustUserHeader {
		if u := c.Get("X-User-ID"); u != "" {
			if err := sale.CheckUser(u); err != nil {
				return "", failure(fiber.StatusBadRequest, "invalid", "X-User-ID: "+err.Error())
			}
			return utils.CopyString(u), nil
		}
	}
	return "", failure(fiber.StatusUnauthorized, "unauthorized", "log in first: POST /api/login, then send Authorization: Bearer TOKEN")
}
