-- +goose Up
-- When an account got another password or role last, by the database's clock;
-- 0: never. Tokens of before are refused.
ALTER TABLE accounts ADD COLUMN changed_ms BIGINT NOT NULL DEFAULT 0;
CREATE INDEX accounts_changed ON accounts (changed_ms) WHERE changed_ms > 0;

-- +goose Down
DROP INDEX accounts_changed;
ALTER TABLE accounts DROP COLUMN changed_ms;
