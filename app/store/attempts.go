package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"gorm.io/gorm"
)

// What is handled is written down before, since a message may kill the process
// that handles it. Nearly every batch ends well, so it is one row while it is
// under way, in the table begun. Only what fails, or was left by somebody who
// died, is counted message by message, in the table attempts.

// staleBegun is the age at which a batch is taken for left by somebody who died
// even if none of its messages comes again.
const staleBegun = time.Hour

// Attempt is one at each message of a batch, from BeginAttempt to EndAttempt.
type Attempt struct {
	id       int64
	messages []string       // as they are kept
	earlier  map[string]int // attempts, by what is in messages
}

// Number says which attempt at the message it is, the first being 1.
func (a Attempt) Number(message string) int { return 1 + a.earlier[text(message, maxLetterID)] }

// underWay are the attempts of this process.
type underWay struct {
	sync.Mutex
	ids []int64
}

func (u *underWay) add(id int64) []int64 {
	u.Lock()
	defer u.Unlock()
	u.ids = append(u.ids, id)
	return slices.Clone(u.ids)
}

func (u *underWay) remove(id int64) {
	u.Lock()
	defer u.Unlock()
	u.ids = slices.DeleteFunc(u.ids, func(other int64) bool { return other == id })
}

// begun is a row of that table, or one of attempts, without an id.
type begun struct {
	ID       int64
	Messages string
	Attempts int
	AtMS     int64 `gorm:"column:at_ms"`
}

// BeginAttempt notes that messages are about to be handled; EndAttempt must follow
// it. It outlives this process, which is what a message may kill. A PostgreSQL
// that is killed may forget the last moment, so that nobody waits for its disk
// before he begins.
func (s *Store) BeginAttempt(ctx context.Context, messages ...string) (_ Attempt, err error) {
	if len(messages) == 0 {
		return Attempt{}, nil
	}
	a := Attempt{id: rand.Int64() | 1, messages: distinct(messages), earlier: map[string]int{}}
	list, err := json.Marshal(a.messages)
	if err != nil {
		return Attempt{}, fmt.Errorf("begin an attempt: %w", err)
	}
	mine := s.begun.add(a.id)
	defer func() {
		if err != nil {
			s.begun.remove(a.id)
			err = fmt.Errorf("begin an attempt at %d messages: %w", len(a.messages), err)
		}
	}()
	now := time.Now().UnixMilli()
	insert := "INSERT INTO begun (id, messages, at_ms) SELECT CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS BIGINT)"
	if s.name == "postgres" {
		insert += " FROM " + unhurried
	}
	if err := s.write.WithContext(ctx).Exec(insert, a.id, string(list), now).Error; err != nil {
		return Attempt{}, err
	}
	left, err := s.before(ctx, a, mine, string(list), now)
	if err == nil && len(left) > 0 {
		if err = s.takeOver(ctx, left); err == nil {
			_, err = s.before(ctx, a, mine, string(list), now)
		}
	}
	return a, err
}

// before reads the earlier attempts at a's messages, and returns those that others
// began and left.
func (s *Store) before(ctx context.Context, a Attempt, mine []int64, list string, now int64) (left []begun, err error) {
	var rows []begun
	err = s.write.WithContext(ctx).Raw("SELECT id, messages, 0 AS attempts, at_ms FROM begun WHERE id NOT IN ? UNION ALL "+
		"SELECT 0, message_id, attempts, 0 FROM attempts WHERE message_id IN ("+s.elements()+")", mine, list).Scan(&rows).Error
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.ID == 0 {
			a.earlier[r.Messages] = r.Attempts
			continue
		}
		of, err := r.list()
		if err != nil {
			return nil, err
		}
		common := func(m string) bool { _, ok := slices.BinarySearch(a.messages, m); return ok }
		if now-r.AtMS > staleBegun.Milliseconds() || slices.ContainsFunc(of, common) {
			left = append(left, r)
		}
	}
	return left, nil
}

func (b begun) list() (messages []string, err error) {
	err = json.Unmarshal([]byte(b.Messages), &messages)
	return messages, wrap(fmt.Sprintf("read the messages of attempt %d", b.ID), err)
}

// takeOver counts what others began and left, message by message.
func (s *Store) takeOver(ctx context.Context, left []begun) error {
	for _, r := range left {
		of, err := r.list()
		if err != nil {
			return err
		}
		err = s.transaction(ctx, func(tx *gorm.DB) error {
			gone := tx.Exec("DELETE FROM begun WHERE id = ?", r.ID)
			if gone.Error != nil || gone.RowsAffected == 0 {
				return gone.Error // somebody else did
			}
			_, err := s.count(tx, of)
			return err
		})
		if err != nil {
			return fmt.Errorf("take over attempt %d: %w", r.ID, err)
		}
	}
	return nil
}

// EndAttempt says that an attempt is over: at the failed ones another one will
// follow, and the others are done.
func (s *Store) EndAttempt(ctx context.Context, a Attempt, failed ...string) error {
	if len(a.messages) == 0 {
		return nil
	}
	again := distinct(failed)
	done := slices.DeleteFunc(slices.Clone(a.messages), func(m string) bool { _, ok := slices.BinarySearch(again, m); return ok })
	remove := "DELETE FROM begun WHERE id = ?"
	if s.name == "postgres" {
		remove = "DELETE FROM begun USING " + unhurried + " WHERE id = ?"
	}
	end := func(tx *gorm.DB) error {
		gone := tx.Exec(remove, a.id)
		if gone.Error != nil {
			return gone.Error
		}
		if gone.RowsAffected == 0 {
			// Somebody thought that this process had died, and has counted all of it.
			return s.forget(tx, done)
		}
		if len(again) > 0 {
			if _, err := s.count(tx, again); err != nil {
				return err
			}
		}
		if len(a.earlier) > 0 {
			return s.forget(tx, done)
		}
		return nil
	}
	var err error
	if len(again) == 0 && len(a.earlier) == 0 {
		err = end(s.write.WithContext(ctx)) // usually one statement
	} else {
		err = s.transaction(ctx, end)
	}
	if err == nil {
		s.begun.remove(a.id)
	}
	return wrap(fmt.Sprintf("end an attempt at %d messages", len(a.messages)), err)
}

// CountAttempts counts an attempt at each of the messages, and returns how often
// that was done of each, this time included, until ForgetAttempts. As with
// BeginAttempt, that outlives this process.
func (s *Store) CountAttempts(ctx context.Context, messages ...string) (map[string]int, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	var kept map[string]int
	err := again(func() (err error) {
		kept, err = s.count(s.write.WithContext(ctx), distinct(messages))
		return err
	})
	n := make(map[string]int, len(messages))
	for _, m := range messages {
		n[m] = kept[text(m, maxLetterID)]
	}
	return n, wrap(fmt.Sprintf("count attempts at %d messages", len(messages)), err)
}

func (s *Store) count(tx *gorm.DB, ids []string) (map[string]int, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows := "SELECT value, 1, ? FROM json_each(?) WHERE true"
	if s.name == "postgres" {
		rows = "SELECT value, 1, CAST(? AS BIGINT) FROM json_array_elements_text(CAST(? AS json)), " + unhurried
	}
	var counted []struct {
		MessageID string
		Attempts  int
	}
	err = tx.Raw("INSERT INTO attempts (message_id, attempts, last_ms) "+rows+
		" ON CONFLICT (message_id) DO UPDATE SET attempts = attempts.attempts + 1, last_ms = excluded.last_ms RETURNING message_id, attempts",
		time.Now().UnixMilli(), string(list)).Scan(&counted).Error
	n := make(map[string]int, len(counted))
	for _, c := range counted {
		n[c.MessageID] = c.Attempts
	}
	return n, err
}

// ForgetAttempts removes what was counted of messages that are done.
func (s *Store) ForgetAttempts(ctx context.Context, messages ...string) error {
	err := again(func() error { return s.forget(s.write.WithContext(ctx), distinct(messages)) })
	return wrap("forget attempts", err)
}

func (s *Store) forget(tx *gorm.DB, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	query := "DELETE FROM attempts WHERE message_id IN (" + s.elements() + ")"
	if s.name == "postgres" {
		query = "DELETE FROM attempts USING " + unhurried + " WHERE message_id IN (" + s.elements() + ")"
	}
	return tx.Exec(query, string(list)).Error
}

// unhurried, in the list of a statement's tables, has its transaction not wait for
// the disk.
const unhurried = "(SELECT set_config('synchronous_commit', 'off', true)) AS unhurried"

// elements is a query for those of a JSON array, which is its only argument.
func (s *Store) elements() string {
	if s.name == "postgres" {
		return "SELECT json_array_elements_text(CAST(? AS json))"
	}
	return "SELECT value FROM json_each(?)"
}

// distinct returns the names under which messages are kept, in order: two batches
// with the same messages then do not wait for each other.
func distinct(messages []string) []string {
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = text(m, maxLetterID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
