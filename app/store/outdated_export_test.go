package store

import "context"

// Change runs a statement of somebody who works on the schema.
func (s *Store) Change(ctx context.Context, statement string) error {
	return s.write.WithContext(ctx).Exec(statement).Error
}
