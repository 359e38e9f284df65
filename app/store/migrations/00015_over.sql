-- +goose Up
-- What a buyer had and has no more, for the buyer's list of orders and for a late
-- copy of a click whose order is over.
CREATE INDEX orders_over ON orders (user_id, voucher_id) WHERE status IN ('failed', 'cancelled', 'refunded');

-- +goose Down
DROP INDEX orders_over;
