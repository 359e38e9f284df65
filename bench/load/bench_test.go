package load

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkDue is what it costs to ask a plan: in the order of the messages, as
// a generator does, and anywhere.
func BenchmarkDue(b *testing.B) {
	for _, text := range []string{
		"constant:1000", "poisson:1000", "ramp:100-2000/30s", "step:500/10s,1000/10s,2000", "spike:silence=2s,wall=5000/200ms,tail=100",
	} {
		shape := mustParse(b, text, 1)
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			var last time.Duration
			for n := range uint64(b.N) {
				last = max(last, shape.Due(n))
			}
		})
		b.Run(text+"/anywhere", func(b *testing.B) {
			b.ReportAllocs()
			var last time.Duration
			for n := range uint64(b.N) {
				last = max(last, shape.Due(mix(n)>>30))
			}
		})
	}
}

func BenchmarkCountBefore(b *testing.B) {
	for _, text := range []string{"constant:1000", "poisson:1000"} {
		shape := mustParse(b, text, 1)
		b.Run(text, func(b *testing.B) {
			for range b.N {
				CountBefore(shape, time.Hour)
			}
		})
	}
}

func BenchmarkMessage(b *testing.B) {
	for _, c := range Contents() {
		for _, keys := range []string{"none", "hot:1000,0.8", "uniform:1000000"} {
			plan, err := ParseKeys(keys, 1)
			if err != nil {
				b.Fatal(err)
			}
			message := Source{Trial: 1, Producer: 1, Size: 1000, Content: c, KeyPlan: plan}.Messages()
			b.Run(fmt.Sprintf("%s/%s", c, keys), func(b *testing.B) {
				b.ReportAllocs()
				for n := range uint64(b.N) {
					_ = message(n)
				}
			})
		}
	}
}
