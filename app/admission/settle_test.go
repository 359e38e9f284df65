package admission_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/app/admission"
	"queuelab/app/sale"
	"queuelab/bench/broker/brokertest"
)

func TestMoreOrdersAreSettledAtOnceThanLuaCanUnpack(t *testing.T) {
	g, err := admission.OpenRedis(t.Context(), brokertest.Start(t, "redis", "aof-everysec").URL())
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	const n, unknown = 9000, 10 // Lua unpacks 8000 or so
	v := open(n, nil)
	load(t, g, v)
	rs := make([]sale.Reservation, n)
	for i := range rs {
		rs[i] = reservation(v, sale.ID(i+1), fmt.Sprint("u", i))
	}
	// All but some, which a Redis that lost its keys has forgotten.
	if err := g.Restore(t.Context(), rs[:n-unknown]...); err != nil {
		t.Fatal(err)
	}
	marked := []sale.Reservation{reservation(v, n+1, "other"), reservation(v, n+2, "another")}
	for _, r := range marked {
		admit(t, g, r, sale.Admitted, r.OrderID)
	}
	if err := g.Settle(t.Context(), append(rs, marked[0])...); err != nil {
		t.Fatal(err)
	}
	got, err := g.Book(t.Context(), v.ID)
	if d := cmp.Diff(sale.Book{Loaded: true, Units: n, Buyers: n + 2, Marks: 1}, got); err != nil || d != "" {
		t.Errorf("the gate's book (-want +got):\n%s%v", d, err)
	}
}
