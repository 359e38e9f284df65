package sale

import (
	"encoding/json"
	"testing"
)

// FuzzReservationIsReadAsJSON: the quick way to read a reservation has no opinion
// of its own.
func FuzzReservationIsReadAsJSON(f *testing.F) {
	for _, s := range []string{
		`{"orderId":"1","voucherId":"2","userId":"u","at":3}`,
		`{"orderId":"1","voucherId":"2","userId":"u","nth":4,"at":3}`,
		`{"orderId":"1","voucherId":"2","userId":"u","at":3,"more":4}`,
		`{"orderId":"1","voucherId":"2","userId":"u","at": 3}`,
		`{"orderId":"1","voucherId":"2","userId":"\u0075","at":3}`,
		`{"orderId":"1","voucherId":"2","userId":"u","nth":0,"at":3}`,
		`{"orderId":"01","voucherId":"2","userId":"u","at":3}`,
		`{"orderId":"1","voucherId":"2","userId":"u","at":9223372036854775808}`,
		`{"orderId":"1","voucherId":"2","userId":"u","at":3}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var want Reservation
		wrong := json.Unmarshal(b, &want)
		got, err := DecodeReservation(b)
		if wrong != nil && err == nil {
			t.Fatalf("got %+v of %q, want an error: %v", got, b, wrong)
		}
		if err == nil && got != want {
			t.Fatalf("got %+v of %q, want %+v", got, b, want)
		}
	})
}
