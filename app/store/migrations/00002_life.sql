-- +goose Up
-- What becomes of an order after it is confirmed: it is paid, or its time to pay
-- ends and it is cancelled; what was paid can be refunded. Written as a new
-- table, because SQLite cannot change a check.
ALTER TABLE vouchers ADD COLUMN pay_within_ms BIGINT NOT NULL DEFAULT 0; -- 0: no deadline

CREATE TABLE orders_2 (
    id          BIGINT PRIMARY KEY,
    voucher_id  BIGINT NOT NULL,
    user_id     TEXT   NOT NULL,
    nth         BIGINT NOT NULL, -- which of the units that one buyer may have, from 0
    status      TEXT   NOT NULL CHECK (status IN ('confirmed', 'failed', 'paid', 'cancelled', 'refunded')),
    reason      TEXT   NOT NULL,
    admitted_ms BIGINT NOT NULL,
    decided_ms  BIGINT NOT NULL,
    pay_by_ms   BIGINT NOT NULL, -- 0: no deadline
    paid_ms     BIGINT NOT NULL, -- 0: never
    closed_ms   BIGINT NOT NULL, -- when it was cancelled or refunded; 0: never
    -- 1: the gate may still hold the unit of this order, which has none.
    give_back   BIGINT NOT NULL CHECK (give_back IN (0, 1))
);
INSERT INTO orders_2 SELECT id, voucher_id, user_id, 0, status, reason, admitted_ms, decided_ms, 0, 0, 0, 0 FROM orders;
DROP TABLE orders;
ALTER TABLE orders_2 RENAME TO orders;

-- A buyer has each of the units once; what was not sold or was given back does
-- not stand in the way.
CREATE UNIQUE INDEX orders_one_per_user ON orders (voucher_id, user_id, nth) WHERE status IN ('confirmed', 'paid');
CREATE INDEX orders_by_voucher ON orders (voucher_id, id);
CREATE INDEX orders_unpaid ON orders (pay_by_ms) WHERE status = 'confirmed' AND pay_by_ms > 0;
CREATE INDEX orders_to_give_back ON orders (id) WHERE give_back = 1;

CREATE TABLE payments (
    id       TEXT   PRIMARY KEY, -- as the payer's side names it: a payment that is told twice is one
    order_id BIGINT NOT NULL,
    cents    BIGINT NOT NULL CHECK (cents >= 0),
    state    TEXT   NOT NULL CHECK (state IN ('taken', 'refund_due', 'refunded')),
    reason   TEXT   NOT NULL,
    at_ms    BIGINT NOT NULL
);
CREATE INDEX payments_by_order ON payments (order_id);

-- +goose Down
DROP TABLE payments;
DROP INDEX orders_to_give_back;
DROP INDEX orders_unpaid;
DELETE FROM orders WHERE status NOT IN ('confirmed', 'failed');
ALTER TABLE orders DROP COLUMN give_back;
ALTER TABLE orders DROP COLUMN closed_ms;
ALTER TABLE orders DROP COLUMN paid_ms;
ALTER TABLE orders DROP COLUMN pay_by_ms;
DROP INDEX orders_one_per_user;
ALTER TABLE orders DROP COLUMN nth;
CREATE UNIQUE INDEX orders_one_per_user ON orders (voucher_id, user_id) WHERE status = 'confirmed';
ALTER TABLE vouchers DROP COLUMN pay_within_ms;
