-- +goose Up
-- A payment's id is its order's: of two providers, or of two orders, the same id
-- names two payments. Written as a new table, because SQLite cannot change a key.
CREATE TABLE payments_2 (
    order_id BIGINT NOT NULL,
    id       TEXT   NOT NULL, -- as the payment provider names it: a payment that is told twice is one
    cents    BIGINT NOT NULL CHECK (cents >= 0),
    state    TEXT   NOT NULL CHECK (state IN ('taken', 'refund_due', 'refunded')),
    reason   TEXT   NOT NULL,
    at_ms    BIGINT NOT NULL,
    PRIMARY KEY (order_id, id)
);
INSERT INTO payments_2 SELECT order_id, id, cents, state, reason, at_ms FROM payments;
DROP TABLE payments;
ALTER TABLE payments_2 RENAME TO payments;
CREATE INDEX payments_to_refund ON payments (order_id, id) WHERE state = 'refund_due';

-- +goose Down
CREATE TABLE payments_1 (
    id       TEXT   PRIMARY KEY, -- as the payer's side names it: a payment that is told twice is one
    order_id BIGINT NOT NULL,
    cents    BIGINT NOT NULL CHECK (cents >= 0),
    state    TEXT   NOT NULL CHECK (state IN ('taken', 'refund_due', 'refunded')),
    reason   TEXT   NOT NULL,
    at_ms    BIGINT NOT NULL
);
-- No money is forgotten: an id that several orders have gets the order's beside it.
INSERT INTO payments_1 SELECT CASE WHEN EXISTS (SELECT 1 FROM payments o WHERE o.id = p.id AND o.order_id < p.order_id)
    THEN p.id || '@' || p.order_id ELSE p.id END, p.order_id, p.cents, p.state, p.reason, p.at_ms FROM payments p;
DROP TABLE payments;
ALTER TABLE payments_1 RENAME TO payments;
CREATE INDEX payments_by_order ON payments (order_id);
CREATE INDEX payments_to_refund ON payments (id) WHERE state = 'refund_due';
