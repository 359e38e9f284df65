-- +goose Up
-- Where the orders are in one database and the stock in another one, with the
-- same tables in both. The outbox is beside the orders: what the stock is still
-- to be asked for. An order that is only there is not decided.
CREATE TABLE outbox (
    order_id    BIGINT NOT NULL,
    kind        TEXT   NOT NULL CHECK (kind IN ('take', 'give')), -- a unit for the order, or back from it
    voucher_id  BIGINT NOT NULL,
    user_id     TEXT   NOT NULL,
    nth         BIGINT NOT NULL,
    admitted_ms BIGINT NOT NULL,
    due_ms      BIGINT NOT NULL, -- when somebody else takes it up, if whoever wrote it has not
    PRIMARY KEY (order_id, kind)
);
-- Of a buyer's unit one order is under way at a time.
CREATE UNIQUE INDEX outbox_one_per_user ON outbox (voucher_id, user_id, nth) WHERE kind = 'take';
CREATE INDEX outbox_due ON outbox (due_ms);
CREATE INDEX outbox_give ON outbox (voucher_id) WHERE kind = 'give';

-- The inbox is beside the stock: what it was asked for, and how it answered.
-- Asking again gets the same answer.
CREATE TABLE inbox (
    order_id   BIGINT NOT NULL,
    kind       TEXT   NOT NULL CHECK (kind IN ('take', 'give')),
    voucher_id BIGINT NOT NULL,
    answer     TEXT   NOT NULL, -- '': done; else why not
    at_ms      BIGINT NOT NULL,
    PRIMARY KEY (order_id, kind)
);

-- What the buyer's side calls the wish that became the order; '': nothing, or the
-- gate keeps it.
ALTER TABLE orders ADD COLUMN click_key TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE orders DROP COLUMN click_key;
DROP TABLE inbox;
DROP TABLE outbox;
