package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"queuelab/app/fleet"
)

// instancesFor is for how long an instance is listed after its last word.
const instancesFor = 10 * time.Minute

// Beat implements fleet.Store.
func (s *Store) Beat(ctx context.Context, i fleet.Instance) error {
	stopped := 0
	if i.Stopped {
		stopped = 1
	}
	terms := ""
	if len(i.Terms) > 0 {
		b, err := json.Marshal(i.Terms)
		if err != nil {
			return fmt.Errorf("write down instance %d: %w", i.Number, err)
		}
		terms = string(b)
	}
	err := s.write.WithContext(ctx).Exec("UPDATE workers SET role = ?, version = ?, queue = ?, name = ?, failing = ?, terms = ?, stopped = ?, up_ms = ?, seen_ms = "+s.now()+
		" WHERE worker_id = ? AND holder = ?",
		i.Role, i.Version, i.Queue, i.Name, strings.Join(i.Failing, ","), terms, stopped, i.Up.Milliseconds(), i.Number, i.Holder).Error
	if err != nil {
		return fmt.Errorf("write down instance %d: %w", i.Number, err)
	}
	return nil
}

// Instances implements fleet.Store.
func (s *Store) Instances(ctx context.Context) ([]fleet.Instance, error) {
	var rows []struct {
		WorkerID                                    int
		Holder, Role, Version, Queue, Failing, Name string
		Terms                                       string
		Stopped                                     int
		UpMS                                        int64 `gorm:"column:up_ms"`
		Silent                                      int64
	}
	err := s.read.WithContext(ctx).Raw("SELECT worker_id, holder, role, version, queue, failing, name, terms, stopped, up_ms, "+s.now()+" - seen_ms AS silent "+
		"FROM workers WHERE seen_ms > "+s.now()+" - ? ORDER BY worker_id", instancesFor.Milliseconds()).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	is := make([]fleet.Instance, len(rows))
	for n, r := range rows {
		is[n] = fleet.Instance{Number: r.WorkerID, Holder: r.Holder, Role: r.Role, Version: r.Version, Queue: r.Queue, Name: r.Name, Stopped: r.Stopped == 1,
			Up: time.Duration(r.UpMS) * time.Millisecond, Silent: time.Duration(max(r.Silent, 0)) * time.Millisecond}
		if r.Failing != "" {
			is[n].Failing = strings.Split(r.Failing, ",")
		}
		if r.Terms == "" {
			continue
		}
		if err := json.Unmarshal([]byte(r.Terms), &is[n].Terms); err != nil {
			return nil, fmt.Errorf("list instances: the terms of number %d: %w", r.WorkerID, err)
		}
	}
	return is, nil
}

// Terms lists what instances, those of before too, told of what all must agree on;
// none: no build that tells it has run on this database.
func (s *Store) Terms(ctx context.Context) ([]map[string]string, error) {
	var told []string
	if err := s.read.WithContext(ctx).Table("workers").Where("terms <> ''").Pluck("terms", &told).Error; err != nil {
		return nil, fmt.Errorf("list what instances agreed on: %w", err)
	}
	all := make([]map[string]string, len(told))
	for n, text := range told {
		if err := json.Unmarshal([]byte(text), &all[n]); err != nil {
			return nil, fmt.Errorf("list what instances agreed on: %w", err)
		}
	}
	return all, nil
}

var _ fleet.Store = (*Store)(nil)
