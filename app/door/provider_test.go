package door

import (
	"errors"
	"strings"
	"testing"
	"time"

	"queuelab/app/sale"
)

func TestOnlyWhatTheProviderSignedOfLateIsAPayment(t *testing.T) {
	p := &Provider{Key: []byte(strings.Repeat("k", MinKey))}
	other := &Provider{Key: []byte(strings.Repeat("o", MinKey))}
	now := time.Unix(1700000000, 0)
	pay := sale.Payment{ID: "p1", OrderID: 7, Cents: 100}
	// Made with: printf '7\np1\n100\n1700000000' | openssl dgst -sha256 -hmac kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
	const known = "t=1700000000,v1=c0e791d75cbcece74ed51abe4d7e1f4859b6f3b6692eac7b044ae9ecd61744b4"
	good := p.Sign(pay, now)
	if good != known {
		t.Errorf("got %s, want %s, as providers make it", good, known)
	}
	for _, tc := range []struct {
		name      string
		pay       sale.Payment
		signature string
		at        time.Time
		want      error
	}{
		{"as it was signed", pay, good, now, nil},
		{"four minutes later", pay, good, now.Add(4 * time.Minute), nil},
		{"by a clock that is ahead", pay, good, now.Add(-4 * time.Minute), nil},
		{"six minutes later", pay, good, now.Add(6 * time.Minute), ErrSignedLong},
		{"of the future", pay, good, now.Add(-6 * time.Minute), ErrSignedLong},
		{"another order", sale.Payment{ID: "p1", OrderID: 8, Cents: 100}, good, now, ErrUnsigned},
		{"another payment", sale.Payment{ID: "p2", OrderID: 7, Cents: 100}, good, now, ErrUnsigned},
		{"another amount", sale.Payment{ID: "p1", OrderID: 7, Cents: 99}, good, now, ErrUnsigned},
		{"another moment", pay, strings.Replace(good, "t=17", "t=18", 1), now, ErrUnsigned},
		{"another key", pay, other.Sign(pay, now), now, ErrUnsigned},
		{"no signature", pay, "", now, ErrUnsigned},
		{"an empty one", pay, "t=1700000000,v1=", now, ErrUnsigned},
		{"no hex", pay, "t=1700000000,v1=zz", now, ErrUnsigned},
		{"something after it", pay, good + ",v2=", now, ErrUnsigned},
	} {
		if err := p.Check(tc.pay, tc.signature, tc.at); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
	}
}
