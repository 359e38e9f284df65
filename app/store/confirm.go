package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"queuelab/app/sale"
)

// confirmAll is the usual end of a batch in one statement, and so in one round
// trip: orders that nobody has decided get units that are there. It is all or
// nothing: where an order is there already, or its buyer has another one, the
// unique indexes end it; where a voucher has too few units, or there is no such
// voucher, the division does. The stock's row, at which all batches of a sale
// meet, is locked last, for a commit and not for round trips.
const confirmAll = `WITH terms AS MATERIALIZED (
  SELECT id, CASE WHEN pay_within_ms > 0 THEN %s + pay_within_ms ELSE 0 END AS pay_by FROM vouchers WHERE id = ANY($7::bigint[])
), fresh AS (
  INSERT INTO orders (id, voucher_id, user_id, nth, status, reason, admitted_ms, decided_ms, pay_by_ms, paid_ms, closed_ms, give_back)
  SELECT a.id, a.voucher, a.buyer, a.nth, 'confirmed', '', a.admitted, $6, t.pay_by, 0, 0, 0
  FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS a (id, voucher, buyer, nth, admitted, n)
  JOIN terms t ON t.id = a.voucher ORDER BY a.n RETURNING voucher_id
), took AS (
  UPDATE vouchers SET stock_left = stock_left - f.units FROM (SELECT voucher_id, count(*) AS units FROM fresh GROUP BY voucher_id) f
  WHERE vouchers.id = f.voucher_id AND stock_left >= f.units RETURNING vouchers.id
)
SELECT w.id, t.pay_by, 1 / CASE WHEN took.id IS NULL THEN 0 ELSE 1 END
FROM unnest($7::bigint[]) AS w (id) LEFT JOIN terms t ON t.id = w.id LEFT JOIN took ON took.id = w.id`

// confirm decides a batch, in the order of inOrder, in one statement. It reports
// false, and has done nothing, where that does not work for this batch.
func (s *Store) confirm(ctx context.Context, todo []sale.Reservation) (map[int64]decision, bool, error) {
	if s.name != "postgres" {
		return nil, false, nil // SQLite has no such statement, and round trips cost nothing there
	}
	raw, err := s.write.DB()
	if err != nil {
		return nil, false, err
	}
	n := len(todo)
	ids, of, nths, admitted := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	users := make([]string, n)
	for i, r := range todo {
		ids[i], of[i], users[i], nths[i], admitted[i] = int64(r.OrderID), int64(r.VoucherID), r.UserID, int64(r.Nth), r.AtMillis
	}
	now := time.Now()
	rows, err := raw.QueryContext(ctx, fmt.Sprintf(confirmAll, s.now()), ids, of, users, nths, admitted, now.UnixMilli(), slices.Compact(slices.Clone(of)))
	if err != nil {
		return nil, false, unlessRefused(err)
	}
	defer rows.Close()
	payBy := map[int64]int64{}
	for rows.Next() {
		var id, by, one int64
		if err := rows.Scan(&id, &by, &one); err != nil {
			return nil, false, err
		}
		payBy[id] = by
	}
	if err := rows.Err(); err != nil {
		return nil, false, unlessRefused(err)
	}
	decided := make(map[int64]decision, n)
	for i, r := range todo {
		w := row(r, sale.Confirmed, "", now)
		w.PayByMS = payBy[of[i]]
		decided[ids[i]] = decision{orderRow: w}
	}
	return decided, true, nil
}

// unlessRefused is nil for an error by which confirmAll says that it is not for
// this batch: a unique index, the division.
func unlessRefused(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "23505" || pg.Code == "22012") {
		return nil
	}
	return err
}
