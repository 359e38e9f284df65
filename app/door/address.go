package door

import (
	"fmt"
	"net/netip"
	"strings"
)

// Proxies are the networks whose machines say for whom they ask.
type Proxies []netip.Prefix

// ParseProxies reads networks such as 10.0.0.0/8 and fd00::/8; an address alone
// is one machine.
func ParseProxies(networks ...string) (Proxies, error) {
	ps := make(Proxies, 0, len(networks))
	for _, s := range networks {
		s = strings.TrimSpace(s)
		p, err := netip.ParsePrefix(s)
		if a, aerr := netip.ParseAddr(s); aerr == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%.60q is not a network: want one such as 10.0.0.0/8, or an address", s)
		}
		if a := p.Addr(); a.Is4In6() {
			if p.Bits() < 96 {
				return nil, fmt.Errorf("%.60q is not a network: write it as IPv4", s)
			}
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		ps = append(ps, p.Masked())
	}
	return ps, nil
}

func (ps Proxies) trust(a netip.Addr) bool {
	for _, p := range ps {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func plainAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// Client tells who asks: peer is the other end of the connection, forwarded the
// values of X-Forwarded-For in their order. Each machine on the way has put the
// one before it at the right end, so the answer is the rightmost that is not a
// trusted proxy: what is left of it, anybody can have written. Where an entry is
// no address, it is the last proxy before it.
func (ps Proxies) Client(peer netip.Addr, forwarded ...string) netip.Addr {
	at := plainAddr(peer)
	for i := len(forwarded) - 1; i >= 0; i-- {
		rest, more := forwarded[i], true
		for more {
			if !ps.trust(at) {
				return at
			}
			entry := rest
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, entry = rest[:comma], rest[comma+1:]
			} else {
				more = false
			}
			next, err := parseHop(strings.Trim(entry, " \t"))
			if err != nil {
				return at
			}
			at = next
		}
	}
	return at
}

// parseHop reads an address, as some proxies write it with a port.
func parseHop(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		var p netip.AddrPort
		if p, err = netip.ParseAddrPort(s); err == nil {
			a = p.Addr()
		}
	}
	return plainAddr(a), err
}

// Caller is what an address is counted as: itself, or the /64 that one customer
// of an IPv6 provider has at the least.
func Caller(a netip.Addr) string {
	a = plainAddr(a)
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
