-- +goose Up
-- How many units one buyer may have, and how many orders may wait for their
-- decision at a time, 0 being no bound. Both are enforced at the gate.
ALTER TABLE vouchers ADD COLUMN per_user BIGINT NOT NULL DEFAULT 1;
ALTER TABLE vouchers ADD COLUMN max_in_flight BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE vouchers DROP COLUMN max_in_flight;
ALTER TABLE vouchers DROP COLUMN per_user;
