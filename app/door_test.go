package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"queuelab/app/door"
	"queuelab/app/store"
	"queuelab/bench/broker/brokertest"
)

// post sends a body and headers "Name: value", and reads the answer.
func post(t *testing.T, url, body string, headers ...string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var a map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		t.Fatalf("got %d without JSON: %v", resp.StatusCode, err)
	}
	return resp.StatusCode, a
}

// With no flags a newcomer registers, gets a way and buys; nobody is believed
// whom he says he is.
func TestByDefaultBuyersHavePasswordsAndPurchaseTokens(t *testing.T) {
	p := startWith(t, t.TempDir(), "--operator-token", operatorToken)
	d := newDoor(t, p.base, 5)
	orders := p.base + "/api/vouchers/" + d.voucher + "/orders"
	if status, a := post(t, orders, "", "X-User-ID: alice"); status != 401 {
		t.Errorf("got %d %v for a name without a login, want 401", status, a)
	}
	status, a := post(t, p.base+"/api/register", `{"user":"alice","password":"correct horse"}`)
	if status != 201 {
		t.Fatalf("got %d %v, want 201", status, a)
	}
	auth := "Authorization: Bearer " + a["token"].(string)
	if status, a := post(t, orders, "", auth); status != 403 {
		t.Errorf("got %d %v without a purchase token, want 403", status, a)
	}
	status, a = post(t, p.base+"/api/vouchers/"+d.voucher+"/path", "", auth)
	if status != 200 {
		t.Fatalf("got %d %v, want a purchase token", status, a)
	}
	if status, a = post(t, orders, "", auth, "X-Purchase-Token: "+a["token"].(string)); status != 202 {
		t.Errorf("got %d %v, want 202", status, a)
	}
	limited := false
	for range 50 {
		if status, _ := post(t, orders, "", auth); status == 429 {
			limited = true
		}
	}
	if !limited {
		t.Error("got no 429 in 50 clicks at once, want the limit of a buyer")
	}
}

// A balancer in front sends a buyer now here, now there.
func TestInstancesShareTheDoor(t *testing.T) {
	redis := brokertest.Start(t, "redis", "aof-everysec").URL()
	key, former := strings.Repeat("k", 32), strings.Repeat("f", 32)
	args := []string{"--redis", redis, "--limit-user", "6/h"}
	old := startWith(t, t.TempDir(), append(args, "--token-key", former)...)
	next := startWith(t, t.TempDir(), append(args, "--token-key", key, "--token-key-old", former)...)
	status, a := post(t, old.base+"/api/register", `{"user":"alice","password":"correct horse"}`)
	if status != 201 {
		t.Fatalf("got %d %v, want 201", status, a)
	}
	auth := "Authorization: Bearer " + a["token"].(string)
	for i, want := range []int{404, 404, 404, 404, 404, 404, 429, 429} {
		p := []*process{old, next}[i%2]
		if status, a := post(t, p.base+"/api/orders/1/cancel", "", auth); status != want {
			t.Errorf("request %d: got %d %v, want %d", i+1, status, a, want)
		}
	}
}

func TestAnOperatorIsAddedWithAPasswordFromStandardInput(t *testing.T) {
	db := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	f := &flags{DB: db}
	add := func(name, in string) (string, error) {
		var out bytes.Buffer
		c := operatorAdd{Name: name}
		if err := c.Validate(); err != nil {
			return "", err
		}
		err := c.run(t.Context(), f, strings.NewReader(in), &out, io.Discard)
		return out.String(), err
	}
	if out, err := add("ann", "correct horse\r\n"); err != nil || !strings.Contains(out, "ann is an operator") {
		t.Fatalf("got %q, %v", out, err)
	}
	t.Setenv(passwordEnv, "another horse")
	if _, err := add("ann", ""); err != nil {
		t.Fatalf("got %v with a password of the environment", err)
	}
	s, err := store.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := s.Account(t.Context(), "ann")
	if err != nil || a.Role != door.Operator {
		t.Fatalf("got %+v, %v, want an operator", a, err)
	}
	for password, want := range map[string]bool{"another horse": true, "correct horse": false} {
		if ok, err := door.NewPasswords().Verify(t.Context(), a.Hash, password); ok != want || err != nil {
			t.Errorf("%s: got %v, %v, want %v", password, ok, err, want)
		}
	}
	t.Setenv(passwordEnv, "")
	for _, tc := range []struct{ name, in, want string }{
		{"ann", "", passwordEnv}, {"ann", "\n", passwordEnv}, {"ann", "short\n", "8 to 128"}, {"a b", "correct horse\n", "letters"},
	} {
		if out, err := add(tc.name, tc.in); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q, %q: got %q, %v, want an error with %q", tc.name, tc.in, out, err, tc.want)
		}
	}
}

func TestAnOperatorIsRemoved(t *testing.T) {
	dir := t.TempDir()
	db := "sqlite:" + filepath.Join(dir, "x.db")
	t.Setenv(passwordEnv, "correct horse")
	remove := func(name string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), []string{"operator", "remove", name, "--db", db}, &out, io.Discard)
		return out.String(), err
	}
	if out, err := remove("ann"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %q, %v of a database that is not there, want that said", out, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("got %v, %v, want no database made of a mistyped name", files, err)
	}
	if err := run(t.Context(), []string{"operator", "add", "ann", "--db", db}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if out, err := remove("ann"); err != nil || !strings.Contains(out, "ann is no operator") {
		t.Fatalf("got %q, %v", out, err)
	}
	for _, name := range []string{"ann", "nobody"} {
		if out, err := remove(name); err == nil || !strings.Contains(err.Error(), "no operator") {
			t.Errorf("%s: got %q, %v, want that there is no such operator", name, out, err)
		}
	}
	s, err := store.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := s.Account(t.Context(), "ann")
	if err != nil || a.Role != door.Buyer {
		t.Fatalf("got %+v, %v, want a buyer", a, err)
	}
	if ok, err := door.NewPasswords().Verify(t.Context(), a.Hash, "correct horse"); ok || err != nil {
		t.Errorf("got %v, %v with the password of before, want no way in", ok, err)
	}
	if changed, err := s.ChangedAccounts(t.Context(), time.Hour); err != nil || len(changed) != 1 {
		t.Errorf("got %v, %v, want the account among those whose tokens end", changed, err)
	}
}

func TestAnotherPasswordEndsTheTokensAtARunningService(t *testing.T) {
	dir := t.TempDir()
	p := startWith(t, dir, "--operator-token", operatorToken, "--limit-user", "off")
	tokens := map[string]string{}
	for _, name := range []string{"ann", "bob"} {
		status, a := post(t, p.base+"/api/register", `{"user":"`+name+`","password":"correct horse"}`)
		if status != 201 {
			t.Fatalf("got %d %v, want 201", status, a)
		}
		tokens[name] = "Authorization: Bearer " + a["token"].(string)
	}
	ask := func(name string) int {
		status, _ := post(t, p.base+"/api/orders/1/cancel", "", tokens[name])
		return status
	}
	if status := ask("ann"); status != 404 {
		t.Fatalf("got %d, want 404: her token is good", status)
	}
	c := operatorAdd{Name: "ann"}
	if err := c.run(t.Context(), &flags{DB: "sqlite:" + filepath.Join(dir, "seckill.db")}, strings.NewReader("another horse\n"), io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the token of before is refused", func() bool { return ask("ann") == 401 })
	if status := ask("bob"); status != 404 {
		t.Errorf("got %d for somebody else, want 404", status)
	}
	p.stop(t)
}
