-- +goose Up
-- In how many parts the gate keeps the voucher's stock. It must never change: the
-- parts have keys of their own, and a buyer's order is in the one that the buyer's
-- name says.
ALTER TABLE vouchers ADD COLUMN buckets BIGINT NOT NULL DEFAULT 1;

-- +goose Down
ALTER TABLE vouchers DROP COLUMN buckets;
