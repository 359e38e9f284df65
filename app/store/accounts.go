package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"queuelab/app/door"
)

// accountRow is a row of the table accounts.
type accountRow struct {
	UserID    string `gorm:"primaryKey"`
	Hash      string
	Role      string
	CreatedMS int64 `gorm:"column:created_ms"`
	ChangedMS int64 `gorm:"column:changed_ms"`
}

func (accountRow) TableName() string { return "accounts" }

func accountOf(a door.Account) accountRow {
	return accountRow{UserID: a.User, Hash: a.Hash, Role: string(a.Role), CreatedMS: a.Created.UnixMilli()}
}

func (r accountRow) account() door.Account {
	return door.Account{User: r.UserID, Hash: r.Hash, Role: door.Role(r.Role), Created: time.UnixMilli(r.CreatedMS).UTC()}
}

// AddAccount implements door.Accounts.
func (s *Store) AddAccount(ctx context.Context, a door.Account) error {
	row := accountOf(a)
	res := s.write.WithContext(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
	if res.Error != nil {
		return fmt.Errorf("add account %s: %w", a.User, res.Error)
	}
	if res.RowsAffected == 0 {
		return fmt.Errorf("add account %s: %w", a.User, door.ErrTaken)
	}
	return nil
}

// PutAccount implements door.Accounts.
func (s *Store) PutAccount(ctx context.Context, a door.Account) error {
	err := s.write.WithContext(ctx).Exec("INSERT INTO accounts (user_id, hash, role, created_ms, changed_ms) VALUES (?, ?, ?, ?, "+s.now()+") "+
		"ON CONFLICT (user_id) DO UPDATE SET hash = excluded.hash, role = excluded.role, changed_ms = excluded.changed_ms",
		a.User, a.Hash, string(a.Role), a.Created.UnixMilli()).Error
	if err != nil {
		return fmt.Errorf("put account %s: %w", a.User, err)
	}
	return nil
}

// Account implements door.Accounts.
func (s *Store) Account(ctx context.Context, user string) (door.Account, error) {
	var r accountRow
	err := s.read.WithContext(ctx).First(&r, "user_id = ?", user).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return door.Account{}, fmt.Errorf("account %s: %w", user, door.ErrNoAccount)
	}
	if err != nil {
		return door.Account{}, fmt.Errorf("read account %s: %w", user, err)
	}
	return r.account(), nil
}

// ChangedAccounts implements door.Accounts.
func (s *Store) ChangedAccounts(ctx context.Context, within time.Duration) ([]door.Account, error) {
	var rows []accountRow
	// The index holds none that never changed, and is used where the query says so.
	err := s.read.WithContext(ctx).Raw("SELECT * FROM accounts WHERE changed_ms > 0 AND changed_ms > "+s.now()+" - ?", within.Milliseconds()).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("look for changed accounts: %w", err)
	}
	as := make([]door.Account, len(rows))
	for i, r := range rows {
		as[i] = r.account()
	}
	return as, nil
}

var _ door.Accounts = (*Store)(nil)
