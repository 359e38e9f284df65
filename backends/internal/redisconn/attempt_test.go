package redisconn

import (
	"testing"

	"queuelab/backends/internal/envelope"
	"queuelab/queue"
)

func TestAnAttemptIsSplitFromItsMessageAndNothingElseIs(t *testing.T) {
	message := string(envelope.Append(nil, queue.Message{ID: "1", Body: []byte("7:x")}))
	for _, c := range []struct {
		name, value string
		attempt     int
		message     string
	}{
		{"a message that was never given back", message, 1, message},
		{"once", "2:" + message, 2, message},
		{"often", "120:" + message, 120, message},
		{"nothing", "", 1, ""},
		{"a text with a colon", "a2:b", 1, "a2:b"},
		{"a number without a colon", "12", 1, "12"},
		{"a number that is too large", "99999999999999999999:x", 1, "99999999999999999999:x"},
	} {
		if attempt, rest := AttemptOf(c.value); attempt != c.attempt || rest != c.message {
			t.Errorf("%s: got %d and %q, want %d and %q", c.name, attempt, rest, c.attempt, c.message)
		}
	}
}
