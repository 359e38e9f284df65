package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// statements are what a queue does to its table.
type statements struct {
	create                   []string
	insert, claim, ack, nack string
	backlog, drop, listen    string
}

// lock makes those who call it with the same name take turns, until the end of
// their transactions.
const lock = `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`

// durably: a table that a crash takes away takes all its messages along, also
// those that were safe by themselves.
const durably = `SET LOCAL synchronous_commit = on`

// A row is ready when visible_at has passed. It has no index: a claim that
// changes no index is cheap (a heap-only tuple, for which the pages keep room),
// and what is in flight, which a claim has to step over, is little beside what
// is ready. '-infinity' makes readiness independent of anybody's clock.
const createTable = `CREATE TABLE IF NOT EXISTS {table} (
	seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	visible_at timestamptz NOT NULL DEFAULT '-infinity',
	holder     bigint,
	attempts   integer NOT NULL DEFAULT 0,
	id         text NOT NULL,
	key        text NOT NULL,
	headers    jsonb,
	body       bytea NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)`

const createKeyIndex = `CREATE INDEX IF NOT EXISTS {index} ON {table} (key, seq)`

// $1 ids, $2 keys, $3 headers, $4 bodies
const insertRows = `INSERT INTO {table} (id, key, headers, body)
SELECT id, key, nullif(headers, '')::jsonb, body
FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[]) WITH ORDINALITY AS m (id, key, headers, body, n)
ORDER BY n`

// $1 most, $2 lease, $3 holder
const claimRows = `WITH next AS (
	SELECT seq FROM {table} AS q
	WHERE visible_at <= now() {order}
	ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
), claimed AS (
	UPDATE {table} AS q
	SET visible_at = now() + $2::interval, holder = $3::bigint, attempts = attempts + 1
	FROM next WHERE q.seq = next.seq
	RETURNING q.seq, q.attempts, q.id, q.key, q.headers, q.body
)
SELECT * FROM claimed ORDER BY seq`

// An earlier row of the key that is ready is taken by the same claim.
const orderOfKeys = `AND (key = '' OR NOT EXISTS (
		SELECT FROM {table} AS e
		WHERE e.key = q.key AND e.seq < q.seq AND e.visible_at > now() AND e.holder <> $3::bigint))`

// $1 seqs, $2 attempts, $3 holder: this claim of the rows, and no other.
const ackRows = `DELETE FROM {table} AS q
USING unnest($1::bigint[], $2::integer[]) AS a (seq, attempts)
WHERE q.seq = a.seq AND q.attempts = a.attempts AND q.holder = $3::bigint
RETURNING a.seq, a.attempts`

// As ackRows; $4 is taken back of the attempts: those that nobody has seen.
const nackRows = `UPDATE {table} AS q
SET visible_at = '-infinity', holder = NULL, attempts = q.attempts - a.unseen
FROM unnest($1::bigint[], $2::integer[], $4::integer[]) AS a (seq, attempts, unseen)
WHERE q.seq = a.seq AND q.attempts = a.attempts AND q.holder = $3::bigint
RETURNING a.seq, a.attempts`

const countRows = `SELECT count(*) FILTER (WHERE visible_at <= now()), count(*) FILTER (WHERE visible_at > now()) FROM {table}`

func statementsFor(name string, byKey bool) statements {
	order := ""
	if byKey {
		order = orderOfKeys
	}
	names := strings.NewReplacer("{table}", pgx.Identifier{name}.Sanitize(), "{index}", pgx.Identifier{name + "_key"}.Sanitize())
	s := statements{
		create:  []string{durably, names.Replace(createTable)},
		insert:  names.Replace(insertRows),
		claim:   names.Replace(strings.Replace(claimRows, "{order}", order, 1)),
		ack:     names.Replace(ackRows),
		nack:    names.Replace(nackRows),
		backlog: names.Replace(countRows),
		drop:    names.Replace("DROP TABLE IF EXISTS {table}"),
		listen:  names.Replace("LISTEN {table}"),
	}
	if byKey {
		s.create = append(s.create, names.Replace(createKeyIndex))
	}
	return s
}
