package store

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"queuelab/app/sale"
)

// paymentRow is a row of the table payments.
type paymentRow struct {
	OrderID int64  `gorm:"primaryKey;autoIncrement:false"`
	ID      string `gorm:"primaryKey"`
	Cents   int64
	State   string
	Reason  string
	AtMS    int64 `gorm:"column:at_ms"`
}

func (paymentRow) TableName() string { return "payments" }

func (r paymentRow) payment() sale.Payment {
	return sale.Payment{ID: r.ID, OrderID: sale.ID(r.OrderID), Cents: r.Cents, State: sale.PaymentState(r.State), Reason: r.Reason, At: moment(r.AtMS)}
}

func refuse(format string, args ...any) error {
	return &sale.Error{Code: sale.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

// Pay implements sale.Life.
func (s *Store) Pay(ctx context.Context, p sale.Payment) (sale.Order, sale.Payment, error) {
	var w orderRow
	var k paymentRow
	err := s.transaction(ctx, func(tx *gorm.DB) error {
		w, k = orderRow{}, paymentRow{}
		order := tx
		if s.name == "postgres" {
			// So that those who tell of one order's payments come one after the other,
			// and the count below is true.
			order = tx.Clauses(clause.Locking{Strength: "UPDATE"})
		}
		err := order.First(&w, "id = ?", int64(p.OrderID)).Error
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return sale.NoOrder()
		}
		if err != nil {
			return err
		}
		var price []int64
		if err := tx.Model(&voucherRow{}).Where("id = ?", w.VoucherID).Pluck("pay_value", &price).Error; err != nil {
			return err
		}
		if len(price) == 1 && price[0] != p.Cents {
			return refuse("the price is %d cents, not %d", price[0], p.Cents)
		}
		err = tx.First(&k, "order_id = ? AND id = ?", w.ID, p.ID).Error
		if !errors.Is(err, gorm.ErrRecordNotFound) {
			return err // told before: nothing changes
		}
		var kept int64
		if err := tx.Model(&paymentRow{}).Where("order_id = ?", w.ID).Count(&kept).Error; err != nil {
			return err
		}
		if kept >= sale.MaxPayments {
			return refuse("the order has %d payments already, and no more are kept: settle this one with the payment provider", kept)
		}
		err = tx.Exec("INSERT INTO payments (order_id, id, cents, state, reason, at_ms) VALUES (?, ?, ?, ?, '', "+s.now()+")",
			w.ID, p.ID, p.Cents, string(sale.Taken)).Error
		if err != nil {
			return err
		}
		return s.settlePayment(tx, p.ID, &w, &k)
	})
	if err != nil {
		if sale.CodeOf(err) != "" {
			return sale.Order{}, sale.Payment{}, err
		}
		return sale.Order{}, sale.Payment{}, fmt.Errorf("pay order %s: %w", p.OrderID, err)
	}
	return w.order(), k.payment(), nil
}

// settlePayment has a payment that was just kept pay its order, or be due back.
func (s *Store) settlePayment(tx *gorm.DB, id string, w *orderRow, k *paymentRow) error {
	var moved []orderRow
	// One statement looks and moves: the order may be cancelled at the same time.
	err := tx.Raw("UPDATE orders SET status = 'paid', paid_ms = "+s.now()+" WHERE id = ? AND status = 'confirmed' AND "+
		"(pay_by_ms = 0 OR pay_by_ms > "+s.now()+") RETURNING *", w.ID).Scan(&moved).Error
	if err != nil {
		return err
	}
	if len(moved) == 1 {
		*w = moved[0]
		return tx.First(k, "order_id = ? AND id = ?", w.ID, id).Error
	}
	if err := tx.First(w, "id = ?", w.ID).Error; err != nil {
		return err
	}
	reason := sale.ReasonTooLate
	switch sale.Status(w.Status) {
	case sale.Paid:
		reason = sale.ReasonPaid
	case sale.Failed:
		reason = sale.ReasonNotSold
	}
	return tx.Raw("UPDATE payments SET state = ?, reason = ? WHERE order_id = ? AND id = ? RETURNING *", string(sale.RefundDue), reason, w.ID, id).Scan(k).Error
}

// moneyBack notes that the payments of orders that were refunded went back.
func (s *Store) moneyBack(tx *gorm.DB, moved []orderRow) error {
	for _, r := range moved {
		err := tx.Exec("UPDATE payments SET state = ? WHERE order_id = ? AND state = ?", string(sale.MoneyBack), r.ID, string(sale.Taken)).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// RefundPayment implements sale.Life.
func (s *Store) RefundPayment(ctx context.Context, order sale.ID, id string) (p sale.Payment, did bool, err error) {
	var k paymentRow
	err = s.transaction(ctx, func(tx *gorm.DB) error {
		k, did = paymentRow{}, false
		if err := tx.First(&k, "order_id = ? AND id = ?", int64(order), id).Error; err != nil {
			return err
		}
		if k.Reason == "" {
			// Its order goes with it, or nothing does.
			moved, err := s.closeOrders(tx, change{to: sale.Refunded, reason: sale.ReasonByOperator, which: "status = ?",
				args: []any{string(sale.Paid)}, also: s.moneyBack}, []int64{k.OrderID})
			if err != nil {
				return err
			}
			did = len(moved) == 1
		} else {
			res := tx.Exec("UPDATE payments SET state = ? WHERE order_id = ? AND id = ? AND state = ?", string(sale.MoneyBack), int64(order), id, string(sale.RefundDue))
			if res.Error != nil {
				return res.Error
			}
			did = res.RowsAffected == 1
		}
		return tx.First(&k, "order_id = ? AND id = ?", int64(order), id).Error
	})
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return p, false, sale.NotFound("no such payment of this order: GET /api/payments lists them")
	}
	return k.payment(), did, wrap("refund payment "+id+" of order "+order.String(), err)
}

// Payments implements sale.Life.
func (s *Store) Payments(ctx context.Context, state sale.PaymentState, after sale.Payment, limit int) ([]sale.Payment, error) {
	var rows []paymentRow
	err := s.read.WithContext(ctx).Where("state = ? AND (order_id, id) > (?, ?)", string(state), int64(after.OrderID), after.ID).Order("order_id, id").Limit(limit).Find(&rows).Error
	ps := make([]sale.Payment, len(rows))
	for i, r := range rows {
		ps[i] = r.payment()
	}
	return ps, wrap("list payments", err)
}

var _ sale.Life = (*Store)(nil)
