// Package postgres is a queue in a table of PostgreSQL: rows are claimed with
// FOR UPDATE SKIP LOCKED. It is the answer to "do we need a queue at all?" for
// a service that has the database anyway.
//
// # Delivery
//
// At least once. A message is a row; a claim sets a lease on it and counts the
// attempt, an ack deletes it, a nack ends its lease. Consumers compete, and
// skip what another one is claiming. Publish is one INSERT, concurrent calls of
// a publisher share it, and it is accepted or rejected as a whole. There are no
// groups: a second reader of everything needs a table of its own.
//
// A delivery belongs to its consumer until the lease has run out, and nobody
// extends it: a handler that takes longer is robbed, by design. Every row has the
// name of its holder and the number of its attempt, and an ack of anything else
// is queue.ErrLeaseLost, checked in the statement that deletes the row. A late
// ack that comes before somebody else has claimed the row is still good. An ack
// whose answer was lost, and is tried again, is ErrLeaseLost too: the row is
// gone, and nothing tells by whose hand.
//
// One consumer sees the messages of a key in the order in which one publisher
// published them, except for what comes again. With order=key this also holds
// for all consumers together: no message of a key is delivered while another
// consumer holds an earlier one of it. Claims then take turns.
//
// An idle consumer looks every poll for what has come or whose lease has run
// out, and at once when it is rung: publishers NOTIFY after their commit, in a
// transaction of its own, since one that is part of the commit makes all commits
// of the database wait for one another. A lost ring costs at most one poll.
//
// # URL
//
//	postgres://user:password@host:5432/database?queue=orders
//
//	queue=NAME      the table is queue_NAME, at most 50 bytes; required. Open creates it
//	lease=D         how long a delivery is its consumer's, 100ms to 1h; default 30s. Make it
//	                several times what a handler needs for all that it takes at once
//	poll=D          how often an idle consumer looks by itself, 1ms to 1m; default 1s
//	notify=BOOL     true (default): publishers ring; false: polling alone
//	order=WHOSE     consumer (default) or key, see above
//	batch=N         most rows of one claim, 1 to 10000; default 100
//	pipeline=N      most messages of concurrent publishes in one INSERT, 1 to 10000; default 512
//	timeout=D       to connect, and for an answer, 10ms to 10m; default 5s
//	sslmode=MODE    as libpq's; default prefer
//	preset=latency  poll=100ms
//	preset=throughput  batch=1000, pipeline=2000
//
// A handle has one connection, a publisher one, and a consumer two: PostgreSQL's
// max_connections, 100 by default, bounds how many there can be. Ids, keys and
// headers are text: without NUL, and UTF-8, or the message is rejected.
//
// # Crash behaviour
//
// What a killed consumer held comes again once its lease has run out, after at
// most one poll more. So does a claim whose answer was lost.
//
// What an accepted message survives is the server's synchronous_commit, which
// Open reads. With on, the default, the write-ahead log was synced before the
// answer, and neither a kill nor a power cut loses anything. With off the log is
// still in the server's memory: a kill loses what was committed within three times
// wal_writer_delay, 0.6 s by default, and so does a power cut; claims and acks of
// that time are undone too, and their messages come again. With fsync=off a kill
// loses nothing, and a power cut may ruin the whole database.
//
// After a lost connection a publish whose answer had not come is unknown, and is
// never sent again by this package. An error that the server itself answers means
// that the transaction was rolled back: rejected.
package postgres
