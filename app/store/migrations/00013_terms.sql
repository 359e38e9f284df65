-- +goose Up
-- What an instance and all others must agree on, as a JSON object of names and
-- values; empty: its build does not tell.
ALTER TABLE workers ADD COLUMN terms TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE workers DROP COLUMN terms;
