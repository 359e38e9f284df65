-- +goose Up
-- Who can log in with a password, and as what.
CREATE TABLE accounts (
    user_id    TEXT   PRIMARY KEY,
    hash       TEXT   NOT NULL, -- argon2id, with its parameters and its salt
    role       TEXT   NOT NULL CHECK (role IN ('buyer', 'operator')),
    created_ms BIGINT NOT NULL
);

-- +goose Down
DROP TABLE accounts;
