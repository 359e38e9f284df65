package door

import (
	"net/netip"
	"testing"
)

func TestTheRightmostAddressThatIsNoTrustedProxyAsks(t *testing.T) {
	ps, err := ParseProxies("10.0.0.0/8", " 192.168.1.1", "fd00::/8", "::ffff:172.16.0.0/108")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no proxy", "203.0.113.5", nil, "203.0.113.5"},
		{"somebody who is no proxy and says so", "203.0.113.5", []string{"1.1.1.1"}, "203.0.113.5"},
		{"one proxy", "10.0.0.1", []string{"203.0.113.5"}, "203.0.113.5"},
		{"a forged start", "10.0.0.1", []string{"1.1.1.1, 203.0.113.5"}, "203.0.113.5"},
		{"a forged start that names a proxy", "10.0.0.1", []string{"10.9.9.9, 203.0.113.5, 10.0.0.2"}, "203.0.113.5"},
		{"two proxies", "10.0.0.1", []string{"203.0.113.5, 192.168.1.1"}, "203.0.113.5"},
		{"two headers", "10.0.0.1", []string{"1.1.1.1, 203.0.113.5", "10.0.0.7"}, "203.0.113.5"},
		{"two headers, the second forged by nobody", "10.0.0.1", []string{"1.1.1.1", "203.0.113.5"}, "203.0.113.5"},
		{"proxies only", "10.0.0.1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"a proxy that says nothing", "10.0.0.1", nil, "10.0.0.1"},
		{"nothing in the header", "10.0.0.1", []string{""}, "10.0.0.1"},
		{"no address", "10.0.0.1", []string{"1.1.1.1, unknown"}, "10.0.0.1"},
		{"no address before a proxy", "10.0.0.1", []string{"1.1.1.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"with a port", "10.0.0.1", []string{"203.0.113.5:4711"}, "203.0.113.5"},
		{"IPv6", "fd00::1", []string{"2001:db8::5"}, "2001:db8::5"},
		{"IPv6 in brackets", "fd00::1", []string{"[2001:db8::5]"}, "2001:db8::5"},
		{"IPv6 with a port", "fd00::1", []string{"[2001:db8::5]:80"}, "2001:db8::5"},
		{"IPv4 as IPv6", "::ffff:10.0.0.1", []string{"::ffff:203.0.113.5"}, "203.0.113.5"},
		{"a network written as IPv6", "172.17.0.1", []string{"203.0.113.5"}, "203.0.113.5"},
		{"a zone", "fe80::1%eth0", nil, "fe80::1"},
	} {
		if got := ps.Client(netip.MustParseAddr(tc.peer), tc.forwarded...).String(); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
	for _, bad := range []string{"", "10.0.0.0/33", "10.0.0.0/8,", "proxy.example", "::ffff:0.0.0.0/90", "fe80::1%eth0"} {
		if got, err := ParseProxies(bad); err == nil {
			t.Errorf("%q: got %v", bad, got)
		}
	}
}

func TestOneCustomerIsOneCaller(t *testing.T) {
	for addr, want := range map[string]string{"203.0.113.5": "203.0.113.5", "::ffff:203.0.113.5": "203.0.113.5",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "2001:db8:1:2::1": "2001:db8:1:2::/64", "2001:db8:1:3::1": "2001:db8:1:3::/64"} {
		if got := Caller(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
}

func FuzzForwarded(f *testing.F) {
	ps, err := ParseProxies("10.0.0.0/8", "fd00::/8")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("203.0.113.5, 10.0.0.1", "[::1]:80")
	f.Add(",", "unknown")
	f.Fuzz(func(t *testing.T, a, b string) {
		peer := netip.MustParseAddr("10.0.0.1")
		got := ps.Client(peer, a, b)
		if !got.IsValid() || got.Zone() != "" || got.Is4In6() || Caller(got) == "" {
			t.Errorf("got %v of %q and %q", got, a, b)
		}
		// What stands left of the answer changes nothing.
		if again := ps.Client(peer, "198.51.100.1, "+a, b); !ps.trust(got) && again != got {
			t.Errorf("got %v, and %v with more at the left of %q and %q", got, again, a, b)
		}
		// Nobody who is no proxy is believed.
		outside := netip.MustParseAddr("203.0.113.9")
		if got := ps.Client(outside, a, b); got != outside {
			t.Errorf("got %v for %v", got, outside)
		}
	})
}
