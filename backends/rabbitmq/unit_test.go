package rabbitmq

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestAttemptsComeFromWhateverTheBrokerTells(t *testing.T) {
	for _, c := range []struct {
		name string
		d    amqp.Delivery
		want int
	}{
		{"a first delivery", amqp.Delivery{}, 1},
		{"a flag of a classic queue", amqp.Delivery{Redelivered: true}, 2},
		{"the first delivery of a quorum queue that counts from 0", amqp.Delivery{Headers: amqp.Table{"x-delivery-count": int64(0)}}, 1},
		{"the count of a quorum queue", amqp.Delivery{Redelivered: true, Headers: amqp.Table{"x-delivery-count": int64(3)}}, 4},
		{"a nack that 4.3 counts apart", amqp.Delivery{Redelivered: true, Headers: amqp.Table{"x-delivery-count": int64(1), "x-acquired-count": int32(5)}}, 6},
		{"a header of the wrong type", amqp.Delivery{Headers: amqp.Table{"x-delivery-count": "9"}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := attemptOf(&c.d); got != c.want {
				t.Errorf("got attempt %d, want %d", got, c.want)
			}
		})
	}
}

func TestARangeNeverCoversAHeldTag(t *testing.T) {
	for _, c := range []struct {
		name       string
		tags, held []uint64
		want       []string
	}{
		{"one is a single", []uint64{7}, nil, []string{"7"}},
		{"all that is held is a range", []uint64{3, 1, 2}, nil, []string{"..3"}},
		{"older ones are a range, later ones singles", []uint64{1, 2, 5, 6}, []uint64{4, 9}, []string{"..2", "5", "6"}},
		{"one before a held one is a single", []uint64{1, 5, 6}, []uint64{4}, []string{"1", "5", "6"}},
		{"none is older than the held one", []uint64{5, 6}, []uint64{1}, []string{"5", "6"}},
		{"settled gaps do no harm", []uint64{2, 90}, []uint64{91}, []string{"..90"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			held := map[uint64]struct{}{}
			for _, tag := range c.held {
				held[tag] = struct{}{}
			}
			var got []string
			err := sendAll(c.tags, held, func(tag uint64, multiple bool) error {
				got = append(got, map[bool]string{true: "..", false: ""}[multiple]+fmt.Sprint(tag))
				return nil
			})
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("error %v; frames (-want +got):\n%s", err, diff)
			}
		})
	}
	broken := errors.New("broken")
	if err := sendAll([]uint64{1, 5}, map[uint64]struct{}{3: {}}, func(uint64, bool) error { return broken }); err != broken {
		t.Errorf("got %v, want the write's error", err)
	}
}

func TestBackoffGrowsFromItsMinimumToItsMaximum(t *testing.T) {
	for failures, full := range map[int]time.Duration{0: 50 * time.Millisecond, 1: 100 * time.Millisecond, 5: 1600 * time.Millisecond, 6: 2 * time.Second, 1000: 2 * time.Second} {
		for range 100 {
			if d := backoff(failures); d < full/2 || d >= full {
				t.Fatalf("after %d failures: got %v, want from %v to %v", failures, d, full/2, full)
			}
		}
	}
}
