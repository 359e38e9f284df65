// Package rabbitmq is a queue on RabbitMQ: an exchange, one durable queue per
// consumer group, publisher confirms, and acks by hand.
//
// # Delivery
//
// At least once. The exchange bears the queue's name, and every group has a
// queue QUEUE.GROUP bound to it, declared by Open: groups each get everything,
// consumers of one group compete. A message published before a group was first
// opened is not seen by that group.
//
// The exchange is a fanout, which copies every message to every group's queue;
// exchange= makes it another one. A direct exchange routes every message by the
// queue's name, so that each group still gets everything, or with route=key by the
// message's key: a group then gets the keys that it is bound to, and a key that no
// group is bound to is unroutable. A topic exchange always routes by the key, and
// bindings are patterns over its words, which dots divide: * is one word, # any
// number of them. Bindings of a group add up over all that open it, and last until
// its queue is deleted; of several that match a message each queue gets one copy.
//
// A nil Publish means that the broker confirmed every message and routed it to
// at least one group's queue. Messages are published as mandatory, so a message
// without a queue comes back and is rejected, though the broker acks it too. A
// nack that arrives while the channel is open is a rejection. Messages that
// were outstanding when a channel or connection died are unknown: the client
// library resolves them as if they had been nacked, and here the two are told
// apart. A message is also certainly rejected when the broker could not be
// reached, or when its caller left before any byte of it was written, as
// happens while the broker blocks publishers (connection.blocked). Every
// message of one key goes over the same channel, so a key's order survives.
//
// With mandatory=false the broker confirms a message that it has no queue for, and
// forgets it: it is accepted and gone.
//
// With max-length the broker bounds how many messages are ready in a group's
// queue. overflow=drop-head, its default, makes room by dropping the oldest,
// which were accepted; reject-publish rejects the new one, though a quorum queue
// lets some more in that were under way. Where several groups have a queue, one
// that is full rejects a message that the others have taken.
//
// A consumer holds at most prefetch unsettled deliveries, those that wait in
// this process included. Acks go to the channel that the delivery came from,
// one frame for the oldest deliveries where all of them are acked at once. They
// are written to a socket and nobody answers, so a nil Ack is not confirmed.
// A delivery of a connection that is known to be dead was given back by the
// broker: settling it is ErrLeaseLost. That is no fence: while a connection is
// cut off and nobody has noticed, an ack is nil and may come to nothing.
//
// Attempt is counted by the broker in a quorum queue. A classic queue only
// flags a redelivery (Attempt 2), and after an unclean restart it flags
// messages that nobody ever got, too. RabbitMQ 4 drops a message of a quorum
// queue after 20 failed deliveries (from 4.3 on, nacks are none) unless a policy
// sets delivery-limit: a broker that is to keep poison messages has to be told.
//
// With auto-ack=true delivery is at most once: the broker forgets what it has
// written to the socket. Ack is then a local matter, Nack is unsupported, and
// prefetch bounds nothing: as much as the queue holds may wait in this
// process's memory and is lost with it. Close publishes anew what Receive has
// not taken, behind what is queued, as far as 2 s suffice for that.
//
// # URL
//
//	amqp://user:password@host:port/vhost?queue=orders
//
// With several host:port, by commas, each connection goes to the first node that
// lets it in.
//
//	queue            name of the exchange; default "orders"
//	group            consumer group; default "workers"
//	exchange         fanout (default), direct or topic; an exchange that exists keeps its own
//	route            with exchange=direct: queue (default), or key, which needs bind
//	bind             A,B.*,...: what the group's queue is bound to, where messages are routed by key;
//	                 default with exchange=topic: #, everything
//	type             classic (default) or quorum
//	members          nodes that have a new quorum queue, 1 to 99; default the broker's own, 3. A message
//	                 is confirmed once most of them have it on disk
//	persistent       true (default): stored on disk; false: kept in memory. A quorum queue always stores
//	confirm          true (default): wait for the broker's confirm; false: nil after the write, unroutable messages vanish
//	mandatory        true (default, with confirm=true): a message without a queue is rejected; false: it is
//	                 confirmed, and gone
//	max-length       most ready messages of the group's queue, 1 to 1000000000; default no bound
//	overflow         what a full queue does: drop-head (default) or reject-publish, which needs confirm=true
//	auto-ack         false (default); true: at most once, see above
//	prefetch         most unsettled deliveries of one consumer, 1 to 65535; default 64
//	window           most unconfirmed messages on one channel, 1 to 1000; default 500
//	channels         channels of one publisher, 1 to 16; default 2. A key always uses the same one
//	confirm-timeout  longest wait of one Publish, 10ms to 10m; what is unconfirmed then is unknown; default 10s
//	heartbeat        1s to 10m in whole seconds: a side that hears nothing for two of them gives the
//	                 connection up; default 10s, and never more than the broker's own
//	settle           how long Open waits after it has created the group's queue, see Crash behaviour;
//	                 default 2s, and 0s unless messages are persistent and confirmed
//	preset           latency (prefetch=16) or throughput (prefetch=1000, window=1000); explicit parameters win
//
// Ids are at most 255 bytes, and so are the names of headers. An id, a key and
// all headers together must fit into one frame, 128 KiB unless the broker was
// told otherwise. What does not fit is rejected, never cut short.
//
// # Crash behaviour
//
// A consumer that dies gives back all that it held, within milliseconds of the
// reset; behind a black hole only after two heartbeats failed, 20 to 30 s.
// Whoever holds such a delivery handles a message that another one gets again. A
// process that itself stood still for more than two heartbeats hangs up before it
// says anything else, so that its late ack is ErrLeaseLost and never nil.
//
// A broker that is killed keeps persistent, confirmed messages. Up to RabbitMQ
// 3.10 a classic queue syncs to disk before it confirms, as a quorum queue always
// does; a classic queue of a later version has only handed them to the operating
// system. With persistent=false it loses everything, confirmed or not, and the
// queue itself stays. Without confirms nothing is promised.
//
// RabbitMQ answers a declaration before the new queue is on disk: a broker that
// is killed a second later comes back without it, or with a quorum queue that
// never answers again, confirmed messages and all. Therefore Open waits once,
// when it has created the queue, so that what is published later is durable.
//
// In a quorum queue of several members the others choose a new leader when its
// node dies. Until they have, publishes are nacked, which is a rejection; a channel
// that was opened meanwhile would go on so for ever, so that one that was nacked is
// replaced, unless a full queue is to reject. Where
// most members are gone nobody answers at all, neither with a confirm nor with an
// error, and what was published waits for their return: it is unknown after
// confirm-timeout.
//
// After a cut, publisher and consumer build a new connection, new channels and
// the topology anew, with a jittered back-off from 50 ms to 2 s. The client
// library's own recovery stays off: it lets a late ack settle another message.
// A queue that was deleted comes back, empty, with the next consumer's
// connection.
package rabbitmq
