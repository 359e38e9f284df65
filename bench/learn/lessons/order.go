package lessons

import (
	"context"
	"fmt"
	"sync"
	"time"

	"queuelab/bench/learn"
	"queuelab/queue"
)

func order() learn.Lesson {
	return learn.Lesson{
		Number: 28, Name: "order-per-user", Topic: learn.Consuming,
		Question: learn.Text{
			EN: "Each user's messages are published in order, and three consumers share the queue. Is each user's order kept?",
			ZH: "每个用户的消息按序发送，三个消费者一起消费，怎么保证每个用户的顺序？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Yes: a queue is first in, first out, however many take from it.", ZH: "能：队列先进先出，和消费者个数无关。"},
				If: learn.Conditions{"list": learn.Is(0), "rabbitmq": learn.Is(0), "kafka": learn.Is(0)}},
			{Text: learn.Text{EN: "Only where all messages of a user go to the same consumer: by partition, or by lanes within one consumer.", ZH: "只有同一用户的消息都落到同一个消费者才行：按 key 分区，或者在消费者内部按 key 分道。"},
				If: learn.Conditions{"list": learn.AtLeast(1), "rabbitmq": learn.AtLeast(1), "kafka": learn.Is(0), "lanes": learn.Is(0)}},
			{Text: learn.Text{EN: "Only with one consumer that handles one message at a time: partitions do not help.", ZH: "只有单消费者单线程才行，分区也没用。"},
				If: learn.Conditions{"list": learn.AtLeast(1), "rabbitmq": learn.AtLeast(1), "kafka": learn.AtLeast(1)}},
		},
		Right: 1,
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "rabbitmq"}, {Kind: "kafka"}},
		Takes: 7 * time.Second,
		Try: func(s *learn.Stand) {
			s.Step("Ten users with six messages each; a user's first one takes the handler longest. Redis List, three consumers.",
				"十个用户各六条，第一条处理最慢。Redis List，三个消费者。")
			s.Count("list", inversions(s, s.Queue("redis-list"), 3, oneByOne), "finished before an earlier one of its user, Redis List", "先于同用户更早消息完成的：Redis List")
			s.Step("The same on RabbitMQ.", "换成 RabbitMQ。")
			s.Count("rabbitmq", inversions(s, s.Queue("rabbitmq", "settle=0s"), 3, oneByOne), "the same, RabbitMQ", "同上：RabbitMQ")
			s.Step("The same on Kafka, three partitions by user.", "换成 Kafka，按用户分三个分区。")
			s.Count("kafka", inversions(s, s.Queue("kafka", "partitions=3", "session=3s"), 3, oneByOne), "the same, Kafka with the user as key", "同上：Kafka，以用户为 key")

			s.Step("One consumer on Redis Streams that hands each message to a goroutine.", "Redis Streams 单消费者，每条开一个 goroutine。")
			s.Count("pool", inversions(s, s.Queue("redis-streams"), 1, goroutines), "one consumer with a goroutine for each message", "单消费者，每条一个 goroutine")
			s.Step("The same consumer with our worker, three lanes by user.", "同样的单消费者，用我们的 worker，按用户分三道。")
			s.Count("lanes", inversions(s, s.Queue("redis-streams"), 1, lanes), "one consumer with three lanes by user", "单消费者，按用户分三道")
		},
		Expect: learn.Conditions{"pool": learn.AtLeast(1)},
		Why: learn.Text{
			EN: "A queue hands out in order, but consumers do not finish in order: over a Redis List {list} messages of 60 were finished before an earlier one of their user, over RabbitMQ {rabbitmq}. In Kafka the key chooses the partition, and a partition has one consumer: {kafka}. Within a process it is the same: a goroutine per message gave {pool}, lanes by user {lanes}.",
			ZH: "队列按序发出，但消费者不按序完成：60 条里，Redis List 有 {list} 条先于同用户更早的消息完成，RabbitMQ 有 {rabbitmq} 条。Kafka 由 key 决定分区，一个分区只有一个消费者：{kafka} 条。进程内也一样：每条一个 goroutine 是 {pool} 条，按用户分道是 {lanes} 条。",
		},
		Say: learn.Text{
			EN: "Order is per key, never for all: the same key to the same partition, queue or lane, and one at a time there. In Kafka that is the message key, in RabbitMQ a consistent-hash exchange or a queue per shard, in a worker lanes by key. A retry must hold up its key, or the effect must check a version and refuse what is older.",
			ZH: "只保证同一个 key 有序，不求全局有序：同 key 进同一分区、同一队列或同一道，并且一次一条。Kafka 用消息 key，RabbitMQ 用一致性哈希交换机或分片队列，进程内按 key 分道。重试时要么挡住这个 key，要么落库时比对版本，旧的不生效。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Message ordering in RabbitMQ", ZH: "RabbitMQ 的消息顺序"}, URL: "https://www.rabbitmq.com/docs/semantics#ordering"},
		},
	}
}

// finished notes which message of which user is done.
type finished struct {
	mu         sync.Mutex
	seen       map[string]bool // ids; a message may come again
	last       map[string]int  // by user, the latest that is done
	inversions int64
	all        chan struct{}
}

const (
	orderUsers = 10
	orderEach  = 6
)

// handle takes the longest for a user's first message, and notes the order in which
// they are finished.
func (f *finished) handle(d *queue.Delivery) {
	nth := int(d.Body[0] - '0')
	time.Sleep(time.Duration(orderEach-nth) * 6 * time.Millisecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[d.ID] {
		return
	}
	f.seen[d.ID] = true
	if nth < f.last[d.Key] {
		f.inversions++
	}
	f.last[d.Key] = max(f.last[d.Key], nth)
	if len(f.seen) == orderUsers*orderEach {
		close(f.all)
	}
}

// consumeBy is a way to consume until ctx ends.
type consumeBy func(ctx context.Context, c queue.Consumer, f *finished) error

// inversions publishes the users' messages and counts those that were finished after
// a later one of their user.
func inversions(s *learn.Stand, q queue.Queue, consumers int, consume consumeBy) int64 {
	f := &finished{seen: map[string]bool{}, last: map[string]int{}, all: make(chan struct{})}
	ctx, cancel := context.WithCancel(s.Context())
	errs := make([]error, consumers)
	var wg sync.WaitGroup
	for i := range consumers {
		c := s.Consumer(q)
		wg.Go(func() {
			if err := consume(ctx, c, f); ctx.Err() == nil {
				errs[i] = err
				cancel()
			}
		})
	}
	end := func() error { cancel(); wg.Wait(); return nil }
	s.After(end) // before the consumers are closed
	p := s.Publisher(q)
	for user := range orderUsers {
		for nth := range orderEach {
			s.Must(p.Publish(ctx, queue.Message{
				ID: fmt.Sprintf("%s-%d-%d", s.ID, user, nth), Key: fmt.Sprint("user", user), Body: []byte(fmt.Sprint(nth)),
			}))
		}
	}
	select {
	case <-f.all:
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		s.Fail("not all of %d messages were handled within 10 s", orderUsers*orderEach)
	}
	_ = end()
	s.Must(errs...)
	return f.inversions
}

// oneByOne handles a message and then takes the next.
func oneByOne(ctx context.Context, c queue.Consumer, f *finished) error {
	for {
		ds, err := c.Receive(ctx, 1)
		if err != nil {
			return err
		}
		f.handle(ds[0])
		if err := c.Ack(context.WithoutCancel(ctx), ds...); err != nil {
			return err
		}
	}
}

// goroutines begins with each message at once.
func goroutines(ctx context.Context, c queue.Consumer, f *finished) error {
	var busy sync.WaitGroup
	defer busy.Wait()
	for {
		ds, err := c.Receive(ctx, 10)
		if err != nil {
			return err
		}
		for _, d := range ds {
			busy.Go(func() {
				f.handle(d)
				_ = c.Ack(context.WithoutCancel(ctx), d) // who would not is delivered again, which is noticed
			})
		}
	}
}

// lanes is the service's own way.
func lanes(ctx context.Context, c queue.Consumer, f *finished) error {
	w := queue.Worker{Consumer: c, Lanes: 3, DrainTimeout: time.Second, Handle: func(_ context.Context, batch []*queue.Delivery) []error {
		for _, d := range batch {
			f.handle(d)
		}
		return nil
	}}
	return w.Run(ctx)
}
