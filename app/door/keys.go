package door

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// MinKey is the fewest bytes of a key that signs.
const MinKey = 32

// maxToken bounds what is looked at, in bytes.
const maxToken = 512

// Keys sign what we hand out and know it again: three parts with dots between,
// the id of the key, what is said, and HMAC-SHA256 over it and what it is for.
// What was signed for one use is worth nothing for another. All may read what is
// said. It is safe for concurrent use.
type Keys struct {
	id  string // of the key that signs
	all map[string][]byte
}

// NewKeys makes Keys of at least MinKey bytes each: the first signs, the others
// are still believed, so that a key can be changed without throwing everybody
// out. Without any, a random one is made, which ends with the process.
func NewKeys(keys ...[]byte) (*Keys, error) {
	if len(keys) == 0 {
		key := make([]byte, MinKey)
		if _, err := rand.Read(key); err != nil {
			return nil, fmt.Errorf("make a token key: %w", err)
		}
		keys = [][]byte{key}
	}
	k := &Keys{all: map[string][]byte{}}
	for i, key := range keys {
		if len(key) < MinKey {
			return nil, fmt.Errorf("a token key has %d bytes, want at least %d", len(key), MinKey)
		}
		id := keyID(key)
		if i == 0 {
			k.id = id
		}
		k.all[id] = key
	}
	return k, nil
}

// keyID names a key without telling it, so that nobody has to give names.
func keyID(key []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("seckill key id"))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil)[:6])
}

func mac(key []byte, use, said string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(use))
	m.Write([]byte{0})
	m.Write([]byte(said))
	return m.Sum(nil)
}

// strict: of two spellings of the same bytes only one is a token.
var strict = base64.RawURLEncoding.Strict()

// Seal signs what is said for a use.
func (k *Keys) Seal(use, said string) string {
	return k.id + "." + strict.EncodeToString([]byte(said)) + "." + strict.EncodeToString(mac(k.all[k.id], use, said))
}

// ErrToken says that a token is none of ours, or not for this.
var ErrToken = errors.New("the token is not valid")

// Open returns what was said, if we signed it for this use; ErrToken otherwise.
// The result shares no memory with the token.
func (k *Keys) Open(use, token string) (string, error) {
	if len(token) > maxToken {
		return "", ErrToken
	}
	id, rest, _ := strings.Cut(token, ".")
	first, second, ok := strings.Cut(rest, ".")
	key, known := k.all[id]
	if !ok || !known {
		return "", ErrToken
	}
	said, err1 := strict.DecodeString(first)
	signature, err2 := strict.DecodeString(second)
	if err1 != nil || err2 != nil || !hmac.Equal(signature, mac(key, use, string(said))) {
		return "", ErrToken
	}
	return string(said), nil
}

// Same compares secrets without telling by its time how much of them agrees.
func Same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return hmac.Equal(x[:], y[:])
}
