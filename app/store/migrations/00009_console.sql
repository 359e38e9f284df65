-- +goose Up
-- What an instance tells of itself, beside its number. Times are of the
-- database's clock.
ALTER TABLE workers ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN queue TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN failing TEXT NOT NULL DEFAULT ''; -- parts that do not answer it, with commas between
ALTER TABLE workers ADD COLUMN stopped BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workers ADD COLUMN up_ms BIGINT NOT NULL DEFAULT 0; -- how long it has been running
ALTER TABLE workers ADD COLUMN seen_ms BIGINT NOT NULL DEFAULT 0; -- its last word; 0: none yet

-- How far the clicks on a voucher came, as each process counted them.
CREATE TABLE tallies (
    voucher_id     BIGINT NOT NULL,
    holder         TEXT   NOT NULL, -- of the lease of the process that counted
    clicked        BIGINT NOT NULL,
    admitted       BIGINT NOT NULL,
    queued         BIGINT NOT NULL,
    sold_out       BIGINT NOT NULL,
    already_bought BIGINT NOT NULL,
    busy           BIGINT NOT NULL,
    PRIMARY KEY (voucher_id, holder)
);

-- +goose Down
DROP TABLE tallies;
ALTER TABLE workers DROP COLUMN seen_ms;
ALTER TABLE workers DROP COLUMN up_ms;
ALTER TABLE workers DROP COLUMN stopped;
ALTER TABLE workers DROP COLUMN failing;
ALTER TABLE workers DROP COLUMN name;
ALTER TABLE workers DROP COLUMN queue;
ALTER TABLE workers DROP COLUMN version;
ALTER TABLE workers DROP COLUMN role;
