package sale

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// ID identifies a voucher or an order. It is a string in JSON, because a
// JavaScript number (and a Lua one) loses the last digits of 63 bits.
type ID int64

func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// IDs makes ids, each once in the whole sale. An error means that none can be
// made at the moment. It is safe for concurrent use.
type IDs interface {
	Next() (ID, error)
}

// MarshalJSON implements json.Marshaler.
func (id ID) MarshalJSON() ([]byte, error) { return id.AppendJSON(make([]byte, 0, 21)), nil }

// AppendJSON appends what MarshalJSON makes.
func (id ID) AppendJSON(b []byte) []byte {
	return append(strconv.AppendInt(append(b, '"'), int64(id), 10), '"')
}

// UnmarshalJSON implements json.Unmarshaler.
func (id *ID) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return errors.New("an id is a string of digits, such as \"7\"")
	}
	v, err := ParseID(s)
	if err != nil {
		return err
	}
	*id = v
	return nil
}

// ParseID reads what String wrote: a positive decimal number that fits into 63
// bits, without sign, spaces or leading zeros. Nothing else is an id, so that
// one thing never has two names.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || s[0] < '1' || s[0] > '9' { // a sign, or a zero
		return 0, fmt.Errorf("%.40q is not an id", s)
	}
	return ID(n), nil
}

// MaxUserLength bounds a user's name, in bytes.
const MaxUserLength = 64

// CheckUser says what is wrong with a user's name, if anything. The name is
// the user's identity: letters, digits, '.', '_', '-' and '@', so that it is
// safe in a header, a token, a log line and a key.
func CheckUser(s string) error {
	if len(s) == 0 || len(s) > MaxUserLength {
		return fmt.Errorf("a user name has 1 to %d characters", MaxUserLength)
	}
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' || c == '@') {
			return fmt.Errorf("a user name has only letters, digits, '.', '_', '-' and '@', not %q", c)
		}
	}
	return nil
}

// MaxKeyLength bounds an idempotency key, in bytes.
const MaxKeyLength = 64

// CheckKey says what is wrong with an idempotency key, if anything.
func CheckKey(s string) error {
	if len(s) == 0 || len(s) > MaxKeyLength {
		return fmt.Errorf("an idempotency key has 1 to %d characters", MaxKeyLength)
	}
	for _, c := range s {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("an idempotency key has only visible ASCII characters, not %q", c)
		}
	}
	return nil
}
