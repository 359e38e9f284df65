package sale

import (
	"strings"
	"testing"
	"time"
)

func TestOffers(t *testing.T) {
	begin := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	good := func() Offer {
		return Offer{Title: "茶 for two", Stock: 10, PayValue: 100, ActualValue: 500, Begin: begin, End: begin.Add(time.Hour)}
	}
	for _, tc := range []struct {
		name   string
		change func(*Offer)
		want   string // a word of the message; "" for none
	}{
		{"a good one passes", func(*Offer) {}, ""},
		{"free of charge passes", func(o *Offer) { o.PayValue = 0 }, ""},
		{"the largest stock passes", func(o *Offer) { o.Stock = MaxStock }, ""},
		{"200 characters of three bytes pass", func(o *Offer) { o.Title = strings.Repeat("茶", 200) }, ""},
		{"no title", func(o *Offer) { o.Title = " " }, "title"},
		{"a title too long", func(o *Offer) { o.Title = strings.Repeat("x", 201) }, "title"},
		{"a title that is not UTF-8", func(o *Offer) { o.Title = "\xff" }, "title"},
		{"a title with a control character", func(o *Offer) { o.Title = "a\x00b" }, "title"},
		{"a title of which nothing can be seen", func(o *Offer) { o.Title = "\u200b \u200b" }, "title"},
		{"a title that is turned round", func(o *Offer) { o.Title = "50\u202eyuan" }, "title"},
		{"a title of an emoji that is joined passes", func(o *Offer) { o.Title = "👩\u200d💻" }, ""},
		{"no stock", func(o *Offer) { o.Stock = 0 }, "stock"},
		{"negative stock", func(o *Offer) { o.Stock = -1 }, "stock"},
		{"absurd stock", func(o *Offer) { o.Stock = MaxStock + 1 }, "stock"},
		{"a negative price", func(o *Offer) { o.PayValue = -1 }, "payValue"},
		{"a price that overflows sums", func(o *Offer) { o.ActualValue = 1 << 62 }, "actualValue"},
		{"ten units for each pass", func(o *Offer) { o.PerUser = 10 }, ""},
		{"eleven units for each", func(o *Offer) { o.PerUser = 11 }, "perUser"},
		{"less than nothing for each", func(o *Offer) { o.PerUser = -1 }, "perUser"},
		{"a bound below nothing", func(o *Offer) { o.MaxInFlight = -1 }, "maxInFlight"},
		{"a bound beyond any stock", func(o *Offer) { o.MaxInFlight = MaxStock + 1 }, "maxInFlight"},
		{"64 buckets pass", func(o *Offer) { o.Buckets = 64 }, ""},
		{"65 buckets", func(o *Offer) { o.Buckets = 65 }, "buckets"},
		{"less than no buckets", func(o *Offer) { o.Buckets = -1 }, "buckets"},
		{"a bound that gives each bucket one passes", func(o *Offer) { o.Buckets, o.MaxInFlight = 16, 16 }, ""},
		{"a bound that leaves a bucket without any", func(o *Offer) { o.Buckets, o.MaxInFlight = 16, 15 }, "maxInFlight"},
		{"no times", func(o *Offer) { o.Begin, o.End = time.Time{}, time.Time{} }, "beginTime"},
		{"an end before the begin", func(o *Offer) { o.End = o.Begin.Add(-time.Second) }, "endTime"},
		{"an end at the begin", func(o *Offer) { o.End = o.Begin }, "endTime"},
		{"an end in a far age", func(o *Offer) { o.End = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }, "endTime"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := good()
			tc.change(&o)
			err := o.Validate()
			if tc.want == "" {
				if err != nil {
					t.Errorf("got %v, want none", err)
				}
				return
			}
			if CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal about %s", err, tc.want)
			}
		})
	}
}

func TestUserNames(t *testing.T) {
	for _, s := range []string{"alice", "42", "a.b-c_d@example.org", strings.Repeat("x", 64)} {
		if err := CheckUser(s); err != nil {
			t.Errorf("got %v for %q, want none", err, s)
		}
	}
	for _, s := range []string{"", strings.Repeat("x", 65), "a b", "a\nb", "é", "a\x00", "{1}", "a|b"} {
		if CheckUser(s) == nil {
			t.Errorf("got no error for %q", s)
		}
	}
}

func FuzzDecodeReservation(f *testing.F) {
	f.Add([]byte(`{"orderId":"1","voucherId":"2","userId":"u","at":3}`))
	f.Add([]byte(`{"orderId":1}`))
	f.Add([]byte(`{"orderId":"-1","voucherId":"2","userId":"u"}`))
	f.Add([]byte(`null`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeReservation(b)
		if err != nil {
			return
		}
		if r.OrderID <= 0 || r.VoucherID <= 0 || CheckUser(r.UserID) != nil {
			t.Fatalf("got %+v of %q", r, b)
		}
		if back, err := DecodeReservation(r.Encode()); err != nil || back != r {
			t.Fatalf("got %+v, %v, want %+v", back, err, r)
		}
	})
}
