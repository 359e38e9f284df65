// Package nats is a queue on NATS JetStream: a stream on disk, with a durable
// pull consumer for each group.
//
// # Delivery
//
// At least once. The stream takes what is published to its one subject and answers
// when it has stored it; a message goes when it is acked. With retention=workqueue
// there is one group, whose consumers compete. With retention=interest groups each
// get everything, and a message goes when all of them have acked it; a message
// published before a group was first opened is not seen by that group.
//
// Whoever holds a delivery longer than ack-wait shares it: it comes again, to
// anybody, and nobody is told. JetStream takes the ack of either, also a late one,
// for an ack of the message, so that a late ack settles under the hands of who has
// it now; there is no fence, and no queue.ErrLeaseLost. Acks and nacks are answered
// by the server. Delivery.Attempt is the server's count of deliveries.
//
// A consumer asks ahead, for prefetch messages at most beyond what Receive has
// returned; they wait in this process, and their ack-wait runs. Close gives them
// back, with one attempt more. One consumer sees the messages of a key in publish
// order, except for what comes again.
//
// With dedupe the id of a message is sent along, and the server drops another one
// of that id within the window: a publish that was unknown can be tried again, and
// nil then also means that it had come through the first time.
//
// Id, key, headers and body travel as one body, since a NATS header cannot hold
// every text. What is larger than the server's max_payload, 1 MiB unless it was told
// otherwise, is rejected.
//
// # URL
//
//	nats://user:password@host:4222,host2:4222?queue=orders
//
//	queue=NAME      the stream, without a dot; required. Open creates it
//	retention=HOW   workqueue (default) or interest
//	group=NAME      the durable consumer, with retention=interest; default workers
//	ack-wait=D      when an unsettled delivery comes again, 100ms to 1h; default 30s
//	pending=N       most unsettled deliveries of a group, then nobody gets more;
//	                1 to 1000000, default 1000
//	prefetch=N      most messages asked for ahead of Receive, 1 to 10000; default 64
//	dedupe=D        window in which an id is stored once, 100ms to 1h; default 0s: none
//	replicas=N      of the stream, in a cluster, 1 to 5; default 1
//	timeout=D       to connect, and for an answer, 10ms to 10m; default 5s
//	preset=latency  prefetch=16
//	preset=throughput  prefetch=500
//
// A stream or group that exists with other settings is an error of Open.
//
// # Crash behaviour
//
// What a killed consumer held, asked ahead or not, comes again after ack-wait.
//
// The server writes a message to the operating system before it answers, so that
// a kill loses nothing. It syncs at an interval, of two minutes by default: a power
// cut loses all that was accepted since the last one, and possibly more, since what
// is on the disk may then be no stream any more. With sync_interval: always it syncs
// before it answers. Open asks the server which it is; one that does not let this
// account ask is taken for one that syncs at an interval.
//
// The numbers of attempts, and the acks of one group of several, are written some
// tenths of a second later, also with sync_interval: always: after a kill some
// deliveries come again as if for the first time, and, where another group has not
// acked them, some that were acked. The ack of the only group removes the message,
// and that is written before the answer.
//
// The client library connects again by itself, and neither keeps nor repeats what
// was published meanwhile. What was under way when a connection broke is unknown.
package nats
