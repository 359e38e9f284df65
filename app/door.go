package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"queuelab/app/admission"
	"queuelab/app/door"
)

// doorFlags are the flags of what stands before the sale.
type doorFlags struct {
	Login          string   `enum:"password,open" default:"password" placeholder:"HOW" help:"How buyers log in: password (accounts that they register), or open (any name, without a password: for labs, only while listening on loopback)."`
	TokenKeyOld    []string `placeholder:"SECRET" help:"Former values of --token-key, whose tokens are still believed."`
	LimitUser      string   `default:"auto" placeholder:"RATE" help:"Requests that one buyer may send, such as 10/s, 100/m, or off. auto: 10/s; off with --trust-user-header."`
	LimitAddress   string   `default:"auto" placeholder:"RATE" help:"Requests that may come from one address, or one IPv6 network of 64 bits. auto: 200/s; off with --trust-user-header."`
	LimitLogin     string   `default:"60/m" placeholder:"RATE" help:"Tries to log in or register from one address. Unless off, there are also 6 a minute for one name from one address, and 60 an hour for one name; beyond those, addresses from which that account logged in lately are let try on, and others if they solve a captcha, where there is one."`
	TrustedProxies []string `placeholder:"CIDR" help:"Networks whose proxies say in X-Forwarded-For for whom they ask, such as 10.0.0.0/8. Default: none, and the header is not read."`
	PurchaseToken  string   `enum:"auto,on,off" default:"auto" placeholder:"WHEN" help:"Whether buying needs a token that is handed out once the sale is open. auto: on; off with --trust-user-header."`
	Captcha        string   `enum:"off,on,auto" default:"off" placeholder:"WHEN" help:"Whether a purchase token needs a captcha: off, on, or auto (while more than --captcha-above are asked for)."`
	PaymentKey     string   `placeholder:"SECRET" help:"Key, at least 32 characters, with which the payment provider signs what it tells of payments. Default: none, and only operators tell of them."`
	Payments       string   `enum:"auto,signed,stand-in" default:"auto" placeholder:"HOW" help:"How buyers pay: signed (the payment provider tells of it), or stand-in (a stand-in for the provider in this process, no money moves: for labs, only while listening on loopback). auto: stand-in with --lab, otherwise signed."`
	CaptchaAbove   int      `default:"500" placeholder:"N" help:"Purchase tokens in a second, of this instance, above which --captcha=auto is on."`
}

const (
	tokenTTL   = 24 * time.Hour
	pathTTL    = time.Minute
	captchaTTL = 2 * time.Minute
	// limitedKeys is how many buyers and addresses an instance remembers: tens of
	// megabytes at the most.
	limitedKeys = 1 << 16
)

// orAuto is a flag's value, or what it is by itself.
func orAuto(value, auto string, trusting bool) string {
	switch {
	case value != "auto":
		return value
	case trusting:
		return "off"
	}
	return auto
}

func (f *flags) limitUser() string     { return orAuto(f.LimitUser, "10/s", f.TrustUserHeader) }
func (f *flags) limitAddress() string  { return orAuto(f.LimitAddress, "200/s", f.TrustUserHeader) }
func (f *flags) purchaseToken() string { return orAuto(f.PurchaseToken, "on", f.TrustUserHeader) }

// standIn reports whether this process plays the payment provider.
func (f *flags) standIn() bool {
	return f.Payments == "stand-in" || f.Payments == "auto" && f.Lab
}

// provider is who tells of payments; nil: only operators.
func (f *flags) provider() *door.Provider {
	p := &door.Provider{Key: []byte(f.PaymentKey), StandIn: f.standIn()}
	switch {
	case f.PaymentKey != "":
	case p.StandIn:
		p.Key = []byte(rand.Text() + rand.Text()) // nobody else needs it
	default:
		return nil
	}
	return p
}

// checkDoor says what is wrong with the door's flags.
func (f *flags) checkDoor(host string) error {
	if f.Login == "open" && !loopback(host) {
		return fmt.Errorf("--login=open lets anybody buy as anybody, so it works only while listening on loopback, not on %q", f.Listen)
	}
	for name, rate := range map[string]string{"--limit-user": f.limitUser(), "--limit-address": f.limitAddress(), "--limit-login": f.LimitLogin} {
		if _, err := door.ParseRate(rate); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := door.ParseProxies(f.TrustedProxies...); err != nil {
		return fmt.Errorf("--trusted-proxies: %w", err)
	}
	for _, key := range f.TokenKeyOld {
		if len(key) < door.MinKey {
			return errors.New("--token-key-old is too short: want at least 32 characters")
		}
	}
	switch {
	case f.Payments == "stand-in" && !loopback(host):
		return fmt.Errorf("--payments=stand-in has buyers pay without money, so it works only while listening on loopback, not on %q", f.Listen)
	case f.PaymentKey != "" && len(f.PaymentKey) < door.MinKey:
		return errors.New("--payment-key is too short: want at least 32 characters")
	case len(f.TokenKeyOld) > 0 && f.TokenKey == "":
		return errors.New("--token-key-old needs the --token-key that took its place")
	case f.Captcha != "off" && f.purchaseToken() == "off":
		return fmt.Errorf("--captcha=%s stands before the purchase token: use --purchase-token=on", f.Captcha)
	case f.CaptchaAbove < 1:
		return fmt.Errorf("--captcha-above=%d: want at least 1", f.CaptchaAbove)
	}
	return nil
}

// newDoor makes the door of the flags. Its limits and used tickets are shared
// where the gate is.
func (s *service) newDoor() (*door.Door, error) {
	f := s.f
	var secrets [][]byte
	if f.TokenKey != "" {
		secrets = append(secrets, []byte(f.TokenKey))
	}
	for _, key := range f.TokenKeyOld {
		secrets = append(secrets, []byte(key))
	}
	keys, err := door.NewKeys(secrets...)
	if err != nil {
		return nil, err
	}
	proxies, err := door.ParseProxies(f.TrustedProxies...)
	if err != nil {
		return nil, err
	}
	d := &door.Door{Sessions: &door.Sessions{Keys: keys, TTL: tokenTTL}, Proxies: proxies, Provider: f.provider()}
	if f.Login == "password" {
		d.Accounts, d.Passwords = s.store, door.NewPasswords()
		d.Known = &door.LocalKnown{}
		if gate, ok := s.gate.(*admission.Redis); ok {
			d.Known = &door.SharedKnown{Client: gate.Client(), Log: s.log}
		}
		if f.Role != roleWorker { // it reads no tokens
			d.Sessions.Changes = &door.Changes{Accounts: s.store, Within: tokenTTL, Log: s.log}
		}
	}
	for _, l := range []struct {
		into       *door.Limiter
		name, rate string
	}{
		{&d.Users, "user", f.limitUser()},
		{&d.Addresses, "address", f.limitAddress()},
		{&d.Callers, "login-address", f.LimitLogin},
		{&d.Guesses, "login-guess", unlessOff(f.LimitLogin, "6/m")},
		{&d.Names, "login-name", unlessOff(f.LimitLogin, "60/h")},
	} {
		rate, err := door.ParseRate(l.rate)
		if err != nil {
			return nil, err
		}
		if rate.N > 0 {
			*l.into = s.limiter(l.name, rate)
		}
	}
	if f.purchaseToken() == "on" {
		d.Paths = &door.Paths{Keys: keys, TTL: pathTTL}
	}
	if f.Captcha != "off" {
		d.Captcha = &door.Captcha{When: door.When(f.Captcha), Above: f.CaptchaAbove, Keys: keys, Once: &door.LocalOnce{}, TTL: captchaTTL}
		if gate, ok := s.gate.(*admission.Redis); ok {
			d.Captcha.Once = &door.SharedOnce{Client: gate.Client()}
		}
	}
	return d, nil
}

func unlessOff(what, rate string) string {
	if what == "off" {
		return what
	}
	return rate
}

func (s *service) limiter(name string, rate door.Rate) door.Limiter {
	local := door.NewLocal(rate, limitedKeys)
	if gate, ok := s.gate.(*admission.Redis); ok {
		return door.NewShared(local, gate.Client(), name, s.log)
	}
	return local
}
