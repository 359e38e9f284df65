-- +goose Up
-- Batches of messages that somebody is handling, for queues that do not count. What
-- is still here when one of its messages comes again was not finished.
CREATE TABLE begun (
    id       BIGINT PRIMARY KEY,
    messages TEXT   NOT NULL, -- a JSON array of their ids
    at_ms    BIGINT NOT NULL
);

-- +goose Down
DROP TABLE begun;
