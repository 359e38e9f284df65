package learn

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"

	"queuelab/bench/broker"
	"queuelab/bench/node"
	"queuelab/bench/proxy"
	"queuelab/bench/shop"
)

// ServiceOptions say which service a lesson wants. The zero value needs nothing
// installed: the memory queue, SQLite, and admission in the process.
type ServiceOptions struct {
	Queue string // URL, as of Stand.URL; "": in the process
	// Redis puts admission into the lesson's Redis, behind the proxy.
	Redis bool
	// Postgres puts orders into the lesson's PostgreSQL, behind the proxy.
	Postgres bool
	Args     []string // more flags of seckill
}

// Service is the real seckill process, which can be killed. Its buyers are in the
// transcript.
type Service struct {
	*shop.Client
	URL string // for buyers, behind the proxy
	// DB is its database, past the proxy, to look and to prepare.
	DB *sql.DB

	s       *Stand
	env     []string
	argv    []string // without those of one Start
	token   string   // the operator's
	direct  *shop.Client
	process *node.Guarded
}

// Service starts a service, and returns once it is ready.
func (s *Stand) Service(o ServiceOptions) *Service {
	s.clock.pause() // it may have to be built
	program, err := s.seckill()
	s.clock.resume()
	s.Must(err)
	token := rand.Text()
	// What the user's shell sets for a service of theirs is not for this one.
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "SECKILL_") })
	env = append(env, "SECKILL_OPERATOR_TOKEN="+token)
	if o.Queue != "" {
		env = append(env, "SECKILL_QUEUE="+o.Queue)
	}
	if o.Redis {
		u, err := url.Parse(s.Broker("redis").URL())
		s.Must(err)
		u.Host = s.Proxy("redis").Addr()
		env = append(env, "SECKILL_REDIS="+u.String())
	}
	var db *sql.DB
	if o.Postgres {
		seen := s.SQLURL()
		u, err := url.Parse(seen)
		s.Must(err)
		direct, err := url.Parse(s.Broker("postgres").URL())
		s.Must(err)
		u.Host = direct.Host
		db, err = sql.Open("pgx", u.String())
		s.Must(err)
		env = append(env, "SECKILL_DB="+seen)
	} else {
		path := filepath.Join(s.dir, "seckill-"+strings.ToLower(token)+".db")
		db, err = sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
		s.Must(err)
		env = append(env, "SECKILL_DB=sqlite:"+path)
	}
	s.After(db.Close)
	return s.instance(program, env, token, db, o.Args)
}

// instance starts one at an address of its own.
func (s *Stand) instance(program string, env []string, token string, db *sql.DB, args []string) *Service {
	port, err := broker.FreePort()
	s.Must(err)
	listen := fmt.Sprintf("127.0.0.1:%d", port)
	front, err := proxy.New("127.0.0.1:0", listen, proxy.Plain)
	s.Must(err)
	s.After(front.Close)
	s.Must(s.script.listen(front, s.ID, "http"))
	v := &Service{
		s: s, env: env, token: token, DB: db, URL: "http://" + front.Addr(),
		argv:   append([]string{program, "--listen", listen, "--trust-user-header", "--allow-lossy"}, args...),
		Client: shop.New("http://"+front.Addr(), token, 64), direct: shop.New("http://"+listen, token, 1),
	}
	v.Title = s.ID
	s.After(func() error { v.Client.Close(); v.direct.Close(); return nil })
	v.Start()
	return v
}

// Start starts it, again after a Die, with these flags more.
func (v *Service) Start(more ...string) {
	p, err := node.StartGuarded(v.env, append(slices.Clone(v.argv), more...)...)
	v.s.Must(err)
	v.process = p
	v.s.After(func() error { p.Stop(); return nil })
	v.s.Eventually("the service to be ready", 20*time.Second, func() bool {
		if p.Ended() {
			v.s.Fail("the service ended at once %s", p.Said())
		}
		return v.direct.Ready(v.s.ctx)
	})
}

// Die kills it with SIGKILL.
func (v *Service) Die() { v.s.Must(v.process.Kill()) }

// Sell creates a voucher on sale.
func (v *Service) Sell(stock int) (voucher string) {
	voucher, err := v.Voucher(v.s.ctx, stock)
	v.s.Must(err)
	return voucher
}

// Click is one click of a buyer that must have an answer: the order, or the code
// of the refusal.
func (v *Service) Click(voucher string, user int) (order, refused string) {
	_, a, err := v.Buy(v.s.ctx, voucher, user)
	v.s.Must(err)
	return a.OrderID, a.Error.Code
}

// Await waits for an order's final status.
func (v *Service) Await(order string, user int) string {
	return v.Result(v.s.ctx, order, user, time.Now().Add(10*time.Second))
}

// Query asks its database for one number.
func (v *Service) Query(query string, args ...any) (n int64) {
	v.s.Must(v.DB.QueryRowContext(context.WithoutCancel(v.s.ctx), query, args...).Scan(&n))
	return n
}
