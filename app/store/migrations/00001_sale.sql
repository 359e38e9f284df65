-- +goose Up
-- One file for PostgreSQL and SQLite. Times are Unix milliseconds, money is
-- cents, ids are 63 bits.
CREATE TABLE vouchers (
    id           BIGINT PRIMARY KEY,
    title        TEXT   NOT NULL,
    stock        BIGINT NOT NULL CHECK (stock > 0),
    stock_left   BIGINT NOT NULL CHECK (stock_left >= 0),
    pay_value    BIGINT NOT NULL CHECK (pay_value >= 0),
    actual_value BIGINT NOT NULL CHECK (actual_value >= 0),
    begin_ms     BIGINT NOT NULL,
    end_ms       BIGINT NOT NULL,
    created_ms   BIGINT NOT NULL
);
CREATE INDEX vouchers_end ON vouchers (end_ms);

CREATE TABLE orders (
    id          BIGINT PRIMARY KEY,
    voucher_id  BIGINT NOT NULL,
    user_id     TEXT   NOT NULL,
    status      TEXT   NOT NULL CHECK (status IN ('confirmed', 'failed')),
    reason      TEXT   NOT NULL,
    admitted_ms BIGINT NOT NULL,
    decided_ms  BIGINT NOT NULL
);
-- One confirmed order per buyer; a failed one does not stand in the way.
CREATE UNIQUE INDEX orders_one_per_user ON orders (voucher_id, user_id) WHERE status = 'confirmed';
CREATE INDEX orders_by_voucher ON orders (voucher_id, id);

-- How often a message was handed to a handler, for queues that do not count.
CREATE TABLE attempts (
    message_id TEXT   PRIMARY KEY,
    attempts   BIGINT NOT NULL,
    last_ms    BIGINT NOT NULL
);

CREATE TABLE dead_letters (
    message_id TEXT   PRIMARY KEY,
    body       TEXT   NOT NULL,
    reason     TEXT   NOT NULL,
    at_ms      BIGINT NOT NULL
);

-- Which process makes ids with which worker number, and until when.
CREATE TABLE workers (
    worker_id  BIGINT PRIMARY KEY,
    holder     TEXT   NOT NULL,
    expires_ms BIGINT NOT NULL
);

-- +goose Down
DROP TABLE workers;
DROP TABLE dead_letters;
DROP TABLE attempts;
DROP TABLE orders;
DROP TABLE vouchers;
