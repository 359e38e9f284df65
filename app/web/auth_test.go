package web

import (
	"bytes"
	"testing"
	"time"
)

func TestTokens(t *testing.T) {
	tokens, err := NewTokens(nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	tokens.now = func() time.Time { return now }
	token, _, err := tokens.Issue("alice")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tokens.User(token); err != nil || got != "alice" {
		t.Errorf("got %q, %v, want alice", got, err)
	}
	other, err := NewTokens(bytes.Repeat([]byte{1}, MinKey), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := other.User(token); err == nil {
		t.Errorf("got %q with another key", got)
	}
	for i := range token {
		if token[i] == '.' {
			continue
		}
		b := []byte(token)
		b[i] ^= 1
		if got, err := tokens.User(string(b)); err == nil && got != "alice" {
			t.Errorf("got %q of a token changed at %d", got, i)
		}
	}
	now = now.Add(time.Minute)
	if got, err := tokens.User(token); err == nil {
		t.Errorf("got %q of a token that has expired", got)
	}
	if _, err := NewTokens([]byte("short"), time.Minute); err == nil {
		t.Error("got tokens with a short key")
	}
}
