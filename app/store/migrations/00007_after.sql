-- +goose Up
-- What is looked after again and again until it is done: units that the gate may
-- still hold, and dead letters that an operator had published again.
ALTER TABLE orders ADD COLUMN give_back_ms BIGINT NOT NULL DEFAULT 0; -- when the gate is looked at next
DROP INDEX orders_to_give_back;
CREATE INDEX orders_to_give_back ON orders (give_back_ms) WHERE give_back = 1;

ALTER TABLE dead_letters ADD COLUMN raw TEXT NOT NULL DEFAULT ''; -- base64 of a body that the column body cannot hold as it is
ALTER TABLE dead_letters ADD COLUMN times BIGINT NOT NULL DEFAULT 1; -- how often it was given up
ALTER TABLE dead_letters ADD COLUMN state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'replaying', 'replayed', 'discarded'));
ALTER TABLE dead_letters ADD COLUMN done_by TEXT NOT NULL DEFAULT ''; -- who replayed or discarded it
ALTER TABLE dead_letters ADD COLUMN done_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE dead_letters ADD COLUMN due_ms BIGINT NOT NULL DEFAULT 0; -- when a replay without an answer is tried again
CREATE INDEX dead_letters_replaying ON dead_letters (due_ms) WHERE state = 'replaying';
CREATE INDEX payments_to_refund ON payments (id) WHERE state = 'refund_due';

-- +goose Down
DROP INDEX payments_to_refund;
DROP INDEX dead_letters_replaying;
ALTER TABLE dead_letters DROP COLUMN due_ms;
ALTER TABLE dead_letters DROP COLUMN done_ms;
ALTER TABLE dead_letters DROP COLUMN done_by;
ALTER TABLE dead_letters DROP COLUMN state;
ALTER TABLE dead_letters DROP COLUMN times;
ALTER TABLE dead_letters DROP COLUMN raw;
DROP INDEX orders_to_give_back;
CREATE INDEX orders_to_give_back ON orders (id) WHERE give_back = 1;
ALTER TABLE orders DROP COLUMN give_back_ms;
