package lessons

import (
	"context"
	"database/sql"
	"sync/atomic"

	"queuelab/app/sale"
	"queuelab/app/store"
	"queuelab/bench/learn"
)

// database is the service's store, on a PostgreSQL database of the lesson's own,
// behind the proxy.
type database struct {
	*store.Store
	stand *learn.Stand
	url   string
}

// openStore has the vouchers of these gates on sale in a new database.
func openStore(s *learn.Stand, gs ...*gate) *database {
	d := &database{stand: s, url: s.SQLURL()}
	s.Quietly(func() { // the schema is long
		st, err := store.Open(s.Context(), d.url)
		s.Must(err)
		s.After(st.Close)
		d.Store = st
		for _, g := range gs {
			s.Must(st.CreateVoucher(s.Context(), g.voucher))
		}
	})
	return d
}

// sql is a connection of the lesson's to the same database.
func (d *database) sql() *sql.DB {
	db, err := sql.Open("pgx", d.url)
	d.stand.Must(err)
	d.stand.After(db.Close)
	return db
}

// decide is one transaction for one order, as the service's worker has it. It may
// be called at any time.
func (d *database) decide(ctx context.Context, r sale.Reservation) (confirmed bool, err error) {
	decided, err := d.Fulfil(ctx, []sale.Reservation{r})
	return err == nil && decided[0].Status == sale.Confirmed, err
}

// rush decides the orders of so many buyers at once, and counts those who got a
// unit.
func (d *database) rush(g *gate, buyers int) int64 {
	var confirmed atomic.Int64
	d.stand.Together(buyers, func(i int) error {
		ok, err := d.decide(d.stand.Context(), g.order(g.buyer(i)))
		if ok {
			confirmed.Add(1)
		}
		return err
	})
	return confirmed.Load()
}

// exec wants a statement to succeed.
func exec(s *learn.Stand, db *sql.DB, statement string, args ...any) {
	_, err := db.ExecContext(s.Context(), statement, args...)
	s.Must(err)
}

// number is what a statement answers.
func number(s *learn.Stand, db *sql.DB, statement string, args ...any) (n int64) {
	s.Must(db.QueryRowContext(s.Context(), statement, args...).Scan(&n))
	return n
}
