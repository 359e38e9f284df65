package store

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"queuelab/app/sale"
)

// What is kept of a message that was given up, in bytes: of its id and of the
// reason for people, of its body for a replay.
const (
	maxLetterID     = 200
	maxLetterReason = 1000
	maxLetterBody   = 64 << 10
)

// replayAgain is when a replay without an answer is tried again, in
// milliseconds.
const replayAgain = 5000

// letterRow is a row of the table dead_letters.
type letterRow struct {
	MessageID string `gorm:"primaryKey"`
	Body      string
	Raw       string
	Reason    string
	AtMS      int64 `gorm:"column:at_ms"`
	Times     int
	State     string
	DoneBy    string
	DoneMS    int64 `gorm:"column:done_ms"`
	DueMS     int64 `gorm:"column:due_ms"`
}

func (letterRow) TableName() string { return "dead_letters" }

func (r letterRow) letter() sale.DeadLetter {
	l := sale.DeadLetter{Message: r.MessageID, Body: []byte(r.Body), Reason: r.Reason, At: moment(r.AtMS), Times: r.Times,
		State: sale.LetterState(r.State), DoneBy: r.DoneBy, Done: moment(r.DoneMS)}
	if raw, err := base64.StdEncoding.DecodeString(r.Raw); err == nil && len(raw) > 0 {
		l.Body = raw
	}
	return l
}

// text is what PostgreSQL takes as text: UTF-8, and no zero byte.
func text(t string, most int) string {
	return strings.ReplaceAll(strings.ToValidUTF8(t[:min(len(t), most)], "\uFFFD"), "\x00", "\uFFFD")
}

// DeadLetter keeps a message that was given up, for an operator. Again it only
// counts, unless the message had been published again: then it is open again.
func (s *Store) DeadLetter(ctx context.Context, message string, body []byte, reason string) error {
	if err := keepLetter(s.write.WithContext(ctx), message, body, reason); err != nil {
		return fmt.Errorf("keep dead letter %.40q: %w", message, err)
	}
	return nil
}

func keepLetter(tx *gorm.DB, message string, body []byte, reason string) error {
	body = body[:min(len(body), maxLetterBody)]
	shown, raw := text(string(body), maxLetterBody), ""
	if shown != string(body) {
		raw = base64.StdEncoding.EncodeToString(body)
	}
	const reopened = "CASE WHEN dead_letters.state IN ('replaying', 'replayed') THEN 'open' ELSE dead_letters.state END"
	return tx.Exec("INSERT INTO dead_letters (message_id, body, raw, reason, at_ms) VALUES (?, ?, ?, ?, ?) "+
		"ON CONFLICT (message_id) DO UPDATE SET reason = excluded.reason, at_ms = excluded.at_ms, times = dead_letters.times + 1, state = "+reopened,
		text(message, maxLetterID), shown, raw, text(reason, maxLetterReason), time.Now().UnixMilli()).Error
}

// GiveUp keeps a message that was given up and fails its order, unless that was
// decided before, and returns the decision that stands.
func (s *Store) GiveUp(ctx context.Context, r sale.Reservation, message string, body []byte, reason, cause string) (sale.Order, error) {
	var w orderRow
	err := s.transaction(ctx, func(tx *gorm.DB) (err error) {
		if err = keepLetter(tx, message, body, cause); err == nil {
			w, err = failOrder(tx, r, reason)
		}
		return err
	})
	if err != nil {
		return sale.Order{}, fmt.Errorf("give up order %s: %w", r.OrderID, err)
	}
	return w.order(), nil
}

// failOrder decides that an order fails, unless it was decided before.
func failOrder(tx *gorm.DB, r sale.Reservation, reason string) (orderRow, error) {
	if _, err := insert(tx, []orderRow{row(r, sale.Failed, reason, time.Now())}); err != nil {
		return orderRow{}, err
	}
	var w orderRow
	if err := tx.First(&w, "id = ?", int64(r.OrderID)).Error; err != nil {
		return orderRow{}, err
	}
	if !w.of(r) {
		w = row(r, sale.Failed, sale.ReasonIDTaken, time.Now())
	}
	return w, nil
}

// DeadLetters counts the messages that wait for an operator.
func (s *Store) DeadLetters(ctx context.Context) (int64, error) {
	var n int64
	err := s.read.WithContext(ctx).Table("dead_letters").Where("state = ?", string(sale.Open)).Count(&n).Error
	return n, wrap("count dead letters", err)
}

// Letter implements sale.Letters.
func (s *Store) Letter(ctx context.Context, message string) (sale.DeadLetter, error) {
	var r letterRow
	err := s.write.WithContext(ctx).First(&r, "message_id = ?", text(message, maxLetterID)).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return sale.DeadLetter{}, sale.NotFound("no such dead letter")
	}
	return r.letter(), wrap("read dead letter", err)
}

// ListLetters implements sale.Letters.
func (s *Store) ListLetters(ctx context.Context, state sale.LetterState, below string, limit int) ([]sale.DeadLetter, error) {
	q := s.read.WithContext(ctx).Order("message_id DESC").Limit(limit)
	if state != "" {
		q = q.Where("state = ?", string(state))
	}
	if below != "" {
		q = q.Where("message_id < ?", text(below, maxLetterID))
	}
	var rows []letterRow
	err := q.Find(&rows).Error
	return letters(rows), wrap("list dead letters", err)
}

func letters(rows []letterRow) []sale.DeadLetter {
	ls := make([]sale.DeadLetter, len(rows))
	for i, r := range rows {
		ls[i] = r.letter()
	}
	return ls
}

// LastTry is the id under which the last try of a message counts as an attempt.
func LastTry(message string) string { return "last:" + message }

// StartReplay implements sale.Letters.
func (s *Store) StartReplay(ctx context.Context, message, by string) (started bool, err error) {
	err = s.transaction(ctx, func(tx *gorm.DB) error {
		res := tx.Exec("UPDATE dead_letters SET state = 'replaying', done_by = ?, done_ms = "+s.now()+", due_ms = "+s.now()+" + ? WHERE message_id = ? AND state = 'open'",
			text(by, maxLetterID), replayAgain, message)
		if started = res.RowsAffected == 1; res.Error != nil || !started {
			return res.Error
		}
		return tx.Exec("DELETE FROM attempts WHERE message_id IN ?", []string{message, LastTry(message)}).Error
	})
	return started, wrap("replay a dead letter", err)
}

// EndReplay implements sale.Letters.
func (s *Store) EndReplay(ctx context.Context, message string, to sale.LetterState) error {
	err := s.write.WithContext(ctx).Exec("UPDATE dead_letters SET state = ? WHERE message_id = ? AND state = 'replaying'", string(to), message).Error
	return wrap("end the replay of a dead letter", err)
}

// ToReplay takes up at most limit letters whose replay has no answer yet. Each
// is due again later, until EndReplay: so instances that ask at the same time
// share them.
func (s *Store) ToReplay(ctx context.Context, limit int) ([]sale.DeadLetter, error) {
	query := "SELECT message_id FROM dead_letters WHERE state = 'replaying' AND due_ms <= " + s.now() + " ORDER BY due_ms LIMIT ?"
	if s.name == "postgres" {
		query += " FOR UPDATE SKIP LOCKED"
	}
	var rows []letterRow
	err := s.write.WithContext(ctx).Raw("UPDATE dead_letters SET due_ms = "+s.now()+" + ? WHERE message_id IN ("+query+") RETURNING *", replayAgain, limit).Scan(&rows).Error
	return letters(rows), wrap("list replays", err)
}

// Discard implements sale.Letters.
func (s *Store) Discard(ctx context.Context, message, by string, r *sale.Reservation) (did bool, err error) {
	err = s.transaction(ctx, func(tx *gorm.DB) error {
		res := tx.Exec("UPDATE dead_letters SET state = 'discarded', done_by = ?, done_ms = "+s.now()+" WHERE message_id = ? AND state = 'open'",
			text(by, maxLetterID), message)
		if did = res.RowsAffected == 1; res.Error != nil || !did || r == nil {
			return res.Error
		}
		_, err := failOrder(tx, *r, sale.ReasonDiscarded)
		return err
	})
	return did, wrap("discard a dead letter", err)
}

var _ sale.Letters = (*Store)(nil)
