package load

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"queuelab/bench/ledger"
)

// KeySyntax is what ParseKeys reads, for people.
const KeySyntax = `none         no message has a key
uniform:N    each message has one of N keys, by chance: uniform:1000
hot:N,SHARE  the same, but one of the N takes a share of all messages: hot:1000,0.8`

// maxKeys bounds the keys, as queues that keep a list per key need memory for it.
const maxKeys = 1_000_000

// KeyPlan says which key each message has. It is a pure function of the
// message's id and the seed; the zero KeyPlan gives none.
type KeyPlan struct {
	Keys     uint64  // how many; 0: no message has a key
	HotShare float64 // of all messages, that key k0 takes; 0: all keys are alike
	Seed     uint64
}

// ParseKeys reads a plan by KeySyntax; the empty text is none. The error names
// the value that is wrong and what is allowed.
func ParseKeys(text string, seed uint64) (KeyPlan, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), ":")
	k := KeyPlan{Seed: seed}
	var err error
	switch {
	case text == "" || name == "none" && rest == "":
		return KeyPlan{}, nil
	case name == "uniform":
		k.Keys, err = parseKeyCount(rest, 1)
	case name == "hot":
		count, share, _ := strings.Cut(rest, ",")
		if k.Keys, err = parseKeyCount(count, 2); err != nil {
			break
		}
		share = strings.TrimSpace(share)
		k.HotShare, err = strconv.ParseFloat(share, 64)
		if err != nil || !k.valid() || k.HotShare == 0 {
			err = fmt.Errorf("share %q: a number above 0 and below 1 is allowed", share)
		}
	default:
		err = fmt.Errorf("unknown; the plans are\n%s", KeySyntax)
	}
	if err != nil {
		return KeyPlan{}, fmt.Errorf("keys %q: %w", text, err)
	}
	return k, nil
}

func parseKeyCount(text string, least uint64) (uint64, error) {
	text = strings.TrimSpace(text)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > maxKeys {
		return 0, fmt.Errorf("%q keys: a whole number from %d to %d is allowed", text, least, maxKeys)
	}
	return n, nil
}

// String returns the text that ParseKeys reads as the same plan.
func (k KeyPlan) String() string {
	switch {
	case k.Keys == 0:
		return "none"
	case k.HotShare > 0:
		return fmt.Sprintf("hot:%d,%s", k.Keys, strconv.FormatFloat(k.HotShare, 'g', -1, 64))
	}
	return fmt.Sprintf("uniform:%d", k.Keys)
}

func (k KeyPlan) valid() bool {
	return k.Keys <= maxKeys && k.HotShare >= 0 && k.HotShare < 1 && (k.HotShare == 0 || k.Keys > 1)
}

// number returns which of the keys a message has; there must be keys.
func (k KeyPlan) number(id ledger.ID) uint64 {
	r := mix(mix(k.Seed^uint64(id.Producer)<<16^uint64(id.Incarnation)) + id.Seq)
	if k.HotShare == 0 {
		return below(r, k.Keys)
	}
	if float64(r)*(1.0/math.MaxUint64) < k.HotShare {
		return 0
	}
	return 1 + below(mix(r), k.Keys-1)
}

// below maps a random number to one from 0 to n-1.
func below(r, n uint64) uint64 {
	high, _ := bits.Mul64(r, n)
	return high
}

func keyName(number uint64) string { return "k" + strconv.FormatUint(number, 10) }
