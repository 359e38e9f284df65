package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"queuelab/app/sale"
)

// Orders and stock may be in two databases, which no transaction spans. Then an
// order is decided in three steps, each a transaction of one of them, and each
// harmless when it is done again:
//
//  1. ask, beside the orders: what the order needs goes into the outbox.
//  2. answer, beside the stock: the unit is taken or not, and the inbox keeps that.
//  3. conclude, beside the orders: the order is confirmed or fails, and leaves the
//     outbox. A unit that was taken in vain goes into it, to be given back.
//
// Fulfil does all three. Whoever dies in between leaves the outbox behind, and
// Relay goes on from there. No reader sees an order before the third step: until
// then it is queued.
//
// The orders' database counts its units as it does without the other one: its
// stock is what was not sold by orders that it has, and follows the other's.

// askAgain is how long the outbox is left to whoever wrote it, in milliseconds.
const askAgain = 2000

// giveBatch bounds the units that are given back in one step.
const giveBatch = 500

// The kinds of requests.
const (
	takeUnit = "take"
	giveUnit = "give"
)

// request is a row of the table outbox.
type request struct {
	OrderID    int64
	Kind       string
	VoucherID  int64
	UserID     string
	Nth        int64
	AdmittedMS int64 `gorm:"column:admitted_ms"`
	DueMS      int64 `gorm:"column:due_ms"`
}

func (request) TableName() string { return "outbox" }

func (r request) reservation() sale.Reservation {
	return sale.Reservation{OrderID: sale.ID(r.OrderID), VoucherID: sale.ID(r.VoucherID), UserID: r.UserID, Nth: int(r.Nth), AtMillis: r.AdmittedMS}
}

// name tells requests apart.
func (r request) name() requestName { return requestName{r.OrderID, r.Kind} }

type requestName struct {
	order int64
	kind  string
}

// OpenTwo opens a database for all but the stock, which is in the other one. All
// instances must agree, and so must the vouchers that there are: each was made
// with both.
func OpenTwo(ctx context.Context, ordersURL, stockURL string) (*Store, error) {
	return openTwo(ctx, ordersURL, stockURL, true)
}

// OpenTwoAsIs is OpenTwo that leaves both schemas as they are.
func OpenTwoAsIs(ctx context.Context, ordersURL, stockURL string) (*Store, error) {
	return openTwo(ctx, ordersURL, stockURL, false)
}

func openTwo(ctx context.Context, ordersURL, stockURL string, migrate bool) (*Store, error) {
	if ordersURL == stockURL {
		return nil, errors.New("the database of the stock is the one of the orders: give another one, or none")
	}
	s, err := open(ctx, ordersURL, migrate)
	if err != nil {
		return nil, err
	}
	if s.stock, err = open(ctx, stockURL, migrate); err != nil {
		return nil, errors.Join(fmt.Errorf("the stock: %w", err), s.Close())
	}
	if err := s.knowsVouchers(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// knowsVouchers fails where a sale that may go on has no stock.
func (s *Store) knowsVouchers(ctx context.Context) error {
	var open, known []int64
	if err := s.read.WithContext(ctx).Model(&voucherRow{}).Where("end_ms > ?", time.Now().UnixMilli()).Pluck("id", &open).Error; err != nil {
		return fmt.Errorf("list vouchers: %w", err)
	}
	if err := s.stock.read.WithContext(ctx).Model(&voucherRow{}).Where("end_ms > ?", time.Now().UnixMilli()).Pluck("id", &known).Error; err != nil {
		return fmt.Errorf("list vouchers of the stock: %w", err)
	}
	for _, id := range open {
		if !slices.Contains(known, id) {
			return fmt.Errorf("voucher %d has no stock in the database of the stock: it was made with the stock beside the orders, so serve it like that until it ends", id)
		}
	}
	return nil
}

// fulfilTwo is Fulfil over two databases.
func (s *Store) fulfilTwo(ctx context.Context, rs []sale.Reservation) ([]sale.Decision, error) {
	if err := s.ask(ctx, rs); err != nil {
		return nil, err
	}
	ids := make([]int64, len(rs))
	vouchers := make([]int64, len(rs))
	for i, r := range rs {
		ids[i], vouchers[i] = int64(r.OrderID), int64(r.VoucherID)
	}
	// Units that were given back come first: the gate may have admitted on them.
	for full := true; full; {
		var given []request
		err := s.write.WithContext(ctx).Where("kind = 'give' AND voucher_id IN ?", vouchers).Limit(giveBatch).Find(&given).Error
		if err == nil {
			_, err = s.relay(ctx, given)
		}
		if err != nil {
			return nil, fmt.Errorf("give units back first: %w", err)
		}
		full = len(given) == giveBatch
	}
	var asked []request
	if err := s.write.WithContext(ctx).Where("kind = 'take' AND order_id IN ?", ids).Find(&asked).Error; err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	mine, err := s.relay(ctx, asked)
	if err != nil {
		return nil, err
	}
	var rows []orderRow
	if err := s.write.WithContext(ctx).Where("id IN ?", ids).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read decisions: %w", err)
	}
	decided := make(map[int64]decision, len(rows))
	for _, w := range rows {
		decided[w.ID] = decision{orderRow: w, again: !mine[w.ID]}
	}
	for _, id := range ids {
		if _, ok := decided[id]; !ok {
			return nil, fmt.Errorf("order %d has no decision", id)
		}
	}
	return decisions(rs, decided), nil
}

// relay does the second and the third step for requests of the outbox, and
// returns the orders that it decided.
func (s *Store) relay(ctx context.Context, asked []request) (map[int64]bool, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	answers, err := s.answer(ctx, asked)
	if err != nil {
		return nil, err
	}
	return s.conclude(ctx, asked, answers)
}

// Relay goes on with at most limit requests that were left in the outbox, and
// returns the orders that it decided and how many requests it did. Instances that
// do so at the same time share them.
func (s *Store) Relay(ctx context.Context, limit int) ([]sale.Order, int, error) {
	query := "SELECT order_id, kind FROM outbox WHERE due_ms <= " + s.now() + " ORDER BY due_ms LIMIT ?"
	if s.name == "postgres" {
		query += " FOR UPDATE SKIP LOCKED"
	}
	var asked []request
	err := s.write.WithContext(ctx).Raw("UPDATE outbox SET due_ms = "+s.now()+" + ? WHERE (order_id, kind) IN ("+query+") RETURNING *", askAgain, limit).Scan(&asked).Error
	if err != nil {
		return nil, 0, fmt.Errorf("take up the outbox: %w", err)
	}
	mine, err := s.relay(ctx, asked)
	if err != nil || len(mine) == 0 {
		return nil, len(asked), err
	}
	ids := make([]sale.ID, 0, len(mine))
	for id := range mine {
		ids = append(ids, sale.ID(id))
	}
	var rows []orderRow
	err = s.write.WithContext(ctx).Where("id IN ?", numbers(ids)).Find(&rows).Error
	return orders(rows), len(asked), wrap("read decisions", err)
}

// UnderWay implements sale.TwoStores.
func (s *Store) UnderWay(ctx context.Context, id sale.ID) (sale.Reservation, bool, error) {
	if s.stock == nil {
		return sale.Reservation{}, false, nil
	}
	var asked []request
	err := s.write.WithContext(ctx).Where("kind = 'take' AND order_id = ?", int64(id)).Find(&asked).Error
	if err != nil || len(asked) == 0 {
		return sale.Reservation{}, false, wrap("read the outbox", err)
	}
	return asked[0].reservation(), true, nil
}

// ask is the first step. An order whose buyer has another one under way for the
// same unit fails.
func (s *Store) ask(ctx context.Context, rs []sale.Reservation) error {
	todo := inOrder(rs)
	ids := make([]int64, len(todo))
	for i, r := range todo {
		ids[i] = int64(r.OrderID)
	}
	err := s.transaction(ctx, func(tx *gorm.DB) error {
		var done, noted []int64
		if err := tx.Model(&orderRow{}).Where("id IN ?", ids).Pluck("id", &done).Error; err != nil {
			return err
		}
		open := slices.DeleteFunc(slices.Clone(todo), func(r sale.Reservation) bool { return slices.Contains(done, int64(r.OrderID)) })
		if len(open) == 0 {
			return nil
		}
		if err := s.post(tx, takeUnit, askAgain, open); err != nil {
			return err
		}
		if err := tx.Model(&request{}).Where("kind = 'take' AND order_id IN ?", ids).Pluck("order_id", &noted).Error; err != nil {
			return err
		}
		var refused []orderRow
		for _, r := range open {
			if !slices.Contains(noted, int64(r.OrderID)) {
				refused = append(refused, row(r, sale.Failed, sale.ReasonAlreadyBought, time.Now()))
			}
		}
		return failAll(tx, refused)
	})
	return wrap("ask for the stock", err)
}

// post puts requests into the outbox that are not in it, due after a while.
func (s *Store) post(tx *gorm.DB, kind string, after int64, rs []sale.Reservation) error {
	args := make([]any, 0, 7*len(rs))
	for _, r := range rs {
		args = append(args, int64(r.OrderID), kind, int64(r.VoucherID), r.UserID, int64(r.Nth), r.AtMillis, after)
	}
	values := strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?,"+s.now()+"+?),", len(rs)), ",")
	return tx.Exec("INSERT INTO outbox (order_id, kind, voucher_id, user_id, nth, admitted_ms, due_ms) VALUES "+values+" ON CONFLICT DO NOTHING", args...).Error
}

// giveLater is for orders that are closed: their units are to go back to the
// other database too.
func (s *Store) giveLater(tx *gorm.DB, rows []orderRow) error {
	if s.stock == nil || len(rows) == 0 {
		return nil
	}
	rs := make([]sale.Reservation, len(rows))
	for i, w := range rows {
		rs[i] = w.order().Reservation
	}
	return wrap("give units back to the stock", s.post(tx, giveUnit, 0, rs))
}

func failAll(tx *gorm.DB, rows []orderRow) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := insert(tx, rows)
	return err
}

// answer is the second step. What was asked before has its answer of then.
func (s *Store) answer(ctx context.Context, asked []request) (map[requestName]string, error) {
	// Who gives comes first, and the earlier order before the later one.
	todo := slices.Clone(asked)
	slices.SortFunc(todo, func(a, b request) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.OrderID, b.OrderID))
	})
	ids, vouchers := make([]int64, len(todo)), make([]int64, len(todo))
	for i, r := range todo {
		ids[i], vouchers[i] = r.OrderID, r.VoucherID
	}
	answers := make(map[requestName]string, len(todo))
	err := s.stock.transaction(ctx, func(tx *gorm.DB) error {
		clear(answers)
		if err := s.stock.lockVouchers(tx, slices.Clone(vouchers)...); err != nil {
			return err
		}
		var before []struct {
			OrderID      int64
			Kind, Answer string
		}
		if err := tx.Table("inbox").Where("order_id IN ?", ids).Find(&before).Error; err != nil {
			return fmt.Errorf("read the inbox: %w", err)
		}
		for _, b := range before {
			answers[requestName{b.OrderID, b.Kind}] = b.Answer
		}
		var stock []voucherRow
		if err := tx.Where("id IN ?", vouchers).Find(&stock).Error; err != nil {
			return fmt.Errorf("read the stock: %w", err)
		}
		left, change := map[int64]int64{}, map[int64]int64{}
		for _, v := range stock {
			left[v.ID] = v.StockLeft
		}
		var args []any
		now := time.Now().UnixMilli()
		for _, r := range todo {
			if _, ok := answers[r.name()]; ok {
				continue
			}
			n, known := left[r.VoucherID]
			why := ""
			switch {
			case !known:
				why = sale.ReasonNoVoucher
			case r.Kind == giveUnit:
				left[r.VoucherID]++
				change[r.VoucherID]++
			case n <= 0:
				why = sale.ReasonSoldOut
			default:
				left[r.VoucherID]--
				change[r.VoucherID]--
			}
			answers[r.name()] = why
			args = append(args, r.OrderID, r.Kind, r.VoucherID, why, now)
		}
		if len(args) == 0 {
			return nil
		}
		values := strings.TrimSuffix(strings.Repeat("(?,?,?,?,?),", len(args)/5), ",")
		if err := tx.Exec("INSERT INTO inbox (order_id, kind, voucher_id, answer, at_ms) VALUES "+values, args...).Error; err != nil {
			return fmt.Errorf("write the inbox: %w", err)
		}
		for _, v := range stock {
			if change[v.ID] == 0 {
				continue
			}
			if err := tx.Exec("UPDATE vouchers SET stock_left = stock_left + ? WHERE id = ?", change[v.ID], v.ID).Error; err != nil {
				return fmt.Errorf("change the stock of voucher %d: %w", v.ID, err)
			}
		}
		return nil
	})
	return answers, wrap("ask the stock", err)
}

// conclude is the third step. It returns the orders that this call decided: of
// two with the same answers, one does.
func (s *Store) conclude(ctx context.Context, asked []request, answers map[requestName]string) (map[int64]bool, error) {
	ids := map[string][]int64{}
	byID := make(map[int64]request, len(asked))
	for _, r := range asked {
		ids[r.Kind] = append(ids[r.Kind], r.OrderID)
		if r.Kind == takeUnit {
			byID[r.OrderID] = r
		}
	}
	mine := map[int64]bool{}
	err := s.transaction(ctx, func(tx *gorm.DB) error {
		clear(mine)
		if give := ids[giveUnit]; len(give) > 0 {
			if err := tx.Exec("DELETE FROM outbox WHERE kind = 'give' AND order_id IN ?", give).Error; err != nil {
				return err
			}
		}
		var taken []int64
		if len(ids[takeUnit]) == 0 {
			return nil
		}
		if err := tx.Raw("DELETE FROM outbox WHERE kind = 'take' AND order_id IN ? RETURNING order_id", ids[takeUnit]).Scan(&taken).Error; err != nil {
			return err
		}
		var granted []sale.Reservation
		var denied []orderRow
		for _, id := range taken {
			mine[id] = true
			r := byID[id].reservation()
			if why := answers[byID[id].name()]; why != "" {
				denied = append(denied, row(r, sale.Failed, why, time.Now()))
			} else {
				granted = append(granted, r)
			}
		}
		if err := failAll(tx, denied); err != nil || len(granted) == 0 {
			return err
		}
		decided, err := s.fulfil(tx, inOrder(granted))
		if err != nil {
			return err
		}
		var inVain []orderRow
		for _, r := range granted {
			if d := decided[int64(r.OrderID)]; !sale.Status(d.Status).Holds() {
				inVain = append(inVain, row(r, sale.Failed, "", time.Now()))
			}
		}
		return s.giveLater(tx, inVain)
	})
	return mine, wrap("conclude orders", err)
}
