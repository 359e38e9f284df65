-- +goose Up
-- A sale may open by a signal that one instance gives, and not by the clocks of
-- all of them.
ALTER TABLE vouchers ADD COLUMN start_by TEXT NOT NULL DEFAULT 'clock' CHECK (start_by IN ('clock', 'signal'));
ALTER TABLE vouchers ADD COLUMN open_at_ms BIGINT NOT NULL DEFAULT 0; -- when the signal is due; 0: when the operator gives it
ALTER TABLE vouchers ADD COLUMN opened_ms BIGINT NOT NULL DEFAULT 0; -- when it was given; 0: not yet
CREATE INDEX vouchers_by_signal ON vouchers (end_ms) WHERE start_by = 'signal';

-- +goose Down
DROP INDEX vouchers_by_signal;
ALTER TABLE vouchers DROP COLUMN opened_ms;
ALTER TABLE vouchers DROP COLUMN open_at_ms;
ALTER TABLE vouchers DROP COLUMN start_by;
