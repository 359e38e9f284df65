package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"queuelab/app/sale"
)

// confirmAll is the usual end of a batch in one statement, and so in one round
// trip: orders that nobody has decided get units that are there. It is all or
// nothing: where a voucher has too few units, or there is no such voucher, the
// division ends it. The stock's row, at which all batches of a sale meet, is then
// locked for a commit and not for round trips.
const confirmAll = `WITH asked AS (
  SELECT a.*, CASE WHEN v.pay_within_ms > 0 THEN %s + v.pay_within_ms ELSE 0 END AS pay_by
  FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS a (id, voucher, buyer, nth, admitted, n)
  LEFT JOIN vouchers v ON v.id = a.voucher
), fresh AS (
  INSERT INTO orders (id, voucher_id, user_id, nth, status, reason, admitted_ms, decided_ms, pay_by_ms, paid_ms, closed_ms, give_back)
  SELECT id, voucher, buyer, nth, 'confirmed', '', admitted, $6, pay_by, 0, 0, 0 FROM asked ORDER BY n
  ON CONFLICT DO NOTHING RETURNING id, voucher_id, pay_by_ms
), took AS (
  UPDATE vouchers SET stock_left = stock_left - f.units FROM (SELECT voucher_id, count(*) AS units FROM fresh GROUP BY voucher_id) f
  WHERE vouchers.id = f.voucher_id AND stock_left >= f.units RETURNING vouchers.id
)
SELECT fresh.id, fresh.pay_by_ms, 1 / CASE WHEN took.id IS NULL THEN 0 ELSE 1 END FROM fresh LEFT JOIN took ON took.id = fresh.voucher_id`

// confirm decides what it can of a batch, in the order of inOrder, in one
// statement, and returns those decisions. None, without an error, may also mean
// that the statement is not for this batch.
func (s *Store) confirm(ctx context.Context, todo []sale.Reservation) (map[int64]decision, error) {
	if s.name != "postgres" {
		return nil, nil // SQLite has no such statement, and round trips cost nothing there
	}
	raw, err := s.write.DB()
	if err != nil {
		return nil, err
	}
	n := len(todo)
	ids, vouchers, nths, admitted := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	users := make([]string, n)
	asked := make(map[int64]sale.Reservation, n)
	for i, r := range todo {
		ids[i], vouchers[i], users[i], nths[i], admitted[i] = int64(r.OrderID), int64(r.VoucherID), r.UserID, int64(r.Nth), r.AtMillis
		if strings.Contains(r.UserID, "\x00") {
			return nil, nil
		}
		asked[ids[i]] = r
	}
	now := time.Now()
	rows, err := raw.QueryContext(ctx, fmt.Sprintf(confirmAll, s.now()), ids, vouchers, users, nths, admitted, now.UnixMilli())
	if err != nil {
		return nil, tooFew(err)
	}
	defer rows.Close()
	decided := make(map[int64]decision, n)
	for rows.Next() {
		var id, payBy, one int64
		if err := rows.Scan(&id, &payBy, &one); err != nil {
			return nil, err
		}
		w := row(asked[id], sale.Confirmed, "", now)
		w.PayByMS = payBy
		decided[id] = decision{orderRow: w}
	}
	if err := rows.Err(); err != nil {
		return nil, tooFew(err)
	}
	return decided, nil
}

// tooFew is nil for the error by which confirmAll says that it did nothing.
func tooFew(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "22012" {
		return nil
	}
	return err
}
