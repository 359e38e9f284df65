package lessons

import (
	"time"

	"queuelab/bench/fault"
	"queuelab/bench/learn"
	"queuelab/bench/ledger"
	"queuelab/bench/node"
	"queuelab/queue"
)

func sixQueues() learn.Lesson {
	names := []string{"memory", "redis-list", "redis-pubsub", "redis-streams", "rabbitmq", "kafka"}
	// The shortest leases that the brokers allow.
	params := map[string]string{"redis-streams": "claim=1s", "kafka": "session=1500ms"}
	l := learn.Lesson{
		Number: 18, Name: "six-queues", Topic: learn.Basics,
		Question: learn.Text{
			EN: "At most once, at least once, exactly once: which of six queues is which, when the consumer is killed?",
			ZH: "至多一次、至少一次、恰好一次：消费者被 kill -9 时，六种队列各是哪一种？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Streams, RabbitMQ and Kafka are exactly once, if one acks by hand.", ZH: "手动确认时，Stream、RabbitMQ、Kafka 都是恰好一次。"},
				If: learn.Conditions{"clean": learn.Is(3)}},
			{Text: learn.Text{EN: "Kafka alone is exactly once.", ZH: "只有 Kafka 是恰好一次。"},
				If: learn.Conditions{"clean": learn.Is(1), "twice-kafka": learn.Is(0), "lost-kafka": learn.Is(0)}},
			{Text: learn.Text{EN: "Three lose, three repeat, and none does neither.", ZH: "三种会丢，三种会重，没有哪种两样都没有。"},
				If: learn.Conditions{"losing": learn.Is(3), "repeating": learn.Is(3), "clean": learn.Is(0)}},
			{Text: learn.Text{EN: "All of them lose what the consumer had in hand.", ZH: "都会丢掉消费者手里的那条。"},
				If: learn.Conditions{"losing": learn.Is(6)}},
		},
		Right: 2,
		Needs: []learn.Need{{Kind: "redis"}, {Kind: "rabbitmq"}, {Kind: "kafka"}},
		Takes: 13 * time.Second,
		Try: func(s *learn.Stand) {
			var trials []*deadConsumer
			s.Step("Six queues, 20 messages each. The consumers are killed with the fifth message in hand, before its effect.", "六种队列各 20 条消息。消费者拿到第五条、还没落库时被 kill -9。")
			for _, name := range names {
				trials = append(trials, killAt(s, fault.MidHandle, name, params[name]))
			}
			s.Step("The same once more. Now they are killed after the effect, before the ack.", "再来一遍，这次在第五条落库之后、确认之前被杀。")
			for _, name := range names {
				trials = append(trials, killAt(s, fault.BeforeAck, name, params[name]))
			}
			lost, twice := map[string]int64{}, map[string]int64{}
			for i, name := range names {
				s.Step("Another consumer takes over what "+name+" has left.", name+"：换一个消费者接手剩下的。")
				for _, k := range []*deadConsumer{trials[i], trials[i+len(names)]} {
					l, t := k.takeOver(s)
					lost[name] += l
					twice[name] += t
				}
			}
			var losing, repeating, clean int64
			for _, name := range names {
				s.Count("lost-"+name, lost[name], name+": lost of 40", name+"：40 条里丢失的")
				s.Count("twice-"+name, twice[name], name+": took effect twice", name+"：生效两次的")
				losing += count(lost[name] > 0)
				repeating += count(twice[name] > 0)
				clean += count(lost[name] == 0 && twice[name] == 0)
			}
			s.Count("losing", losing, "queues that lose", "会丢的队列")
			s.Count("repeating", repeating, "queues that repeat", "会重的队列")
			s.Count("clean", clean, "queues that do neither", "两样都没有的队列")
		},
		Expect: learn.Conditions{
			"lost-memory": learn.AtLeast(10), "lost-redis-list": learn.Is(1), "lost-redis-pubsub": learn.AtLeast(10),
			"twice-memory": learn.Is(0), "twice-redis-list": learn.Is(0), "twice-redis-pubsub": learn.Is(0),
			"twice-redis-streams": learn.AtLeast(1), "twice-rabbitmq": learn.AtLeast(1), "twice-kafka": learn.AtLeast(1),
		},
		Why: learn.Text{
			EN: "What a queue hands over and forgets dies with its consumer: BRPOP lost {lost-redis-list} message, the one in hand, Pub/Sub {lost-redis-pubsub} and the channel {lost-memory}, all that was still to come. What a queue keeps until the ack comes again: Streams repeated {twice-redis-streams}, RabbitMQ {twice-rabbitmq}, Kafka {twice-kafka}, whose effect had been committed before the death. Neither is a defect: the ack and the effect are in two systems, and a death between them is either a loss or a repeat. {clean} of six queues did neither.",
			ZH: "交出去就忘的队列，消息跟着消费者一起死：BRPOP 丢 {lost-redis-list} 条（手里那条），Pub/Sub 丢 {lost-redis-pubsub} 条，channel 丢 {lost-memory} 条（后面的全部）。留到确认为止的队列会再投一次：Stream 重复 {twice-redis-streams} 条，RabbitMQ {twice-rabbitmq} 条，Kafka {twice-kafka} 条，都是死之前已经落库的。这不是缺陷：确认和落库在两个系统里，死在中间，不是丢就是重。六种里两样都没有的有 {clean} 种。",
		},
		Say: learn.Text{
			EN: "BRPOP, Pub/Sub and, once its process dies, memory are at most once; Streams, RabbitMQ and Kafka with an ack after the commit are at least once. No queue gives exactly once to a database beside it. I take at least once and make the effect once, by a unique key in the same transaction.",
			ZH: "BRPOP、Pub/Sub 是至多一次，内存队列在进程死掉时也是；Stream、RabbitMQ、Kafka 提交后再确认，是至少一次。没有哪个队列能对旁边的数据库做到恰好一次。我选至少一次，再用同一事务里的唯一键让它只生效一次。",
		},
	}
	for _, name := range []string{"memory/bounded", "redis-list/aof-everysec", "redis-streams/aof-everysec", "rabbitmq/quorum", "kafka/acks-all"} {
		l.Further = append(l.Further, learn.Link{Cell: name + " consumer-kill-before-ack"})
	}
	return l
}

// deadConsumer is a queue with 20 messages whose consumer killed itself with the fifth.
type deadConsumer struct {
	q    queue.Queue // nil: it lived in that consumer's process
	dies *learn.Process
	sent []queue.Message
}

func killAt(s *learn.Stand, place, backend, params string) *deadConsumer {
	const messages = 20
	url := s.URL(backend, params)
	dies := node.Consume{CrashPoint: place, CrashAtNth: 5}
	if backend == "memory" { // producer, queue and consumer are one process
		dies.HandleDelay = 50 * time.Millisecond // so that all are published by then
		k := &deadConsumer{dies: s.Both(url, node.Produce{Count: messages, Senders: 1, Batch: 1}, dies), sent: make([]queue.Message, messages)}
		k.dies.Struck()
		return k
	}
	k := &deadConsumer{q: s.Open(url), dies: s.Consume(url, dies)}
	p := s.Publisher(k.q)
	for i := range messages {
		id := ledger.ID{Trial: 18, Seq: uint64(i)} // as the process' ledger writes them
		k.sent = append(k.sent, queue.Message{ID: ledger.FormatID(id), Body: []byte(s.ID)})
	}
	s.Must(p.Publish(s.Context(), k.sent...))
	k.dies.Struck()
	return k
}

// takeOver takes and acks what the queue still delivers, and tells how many of the
// messages had no effect, and how many would have had a second one.
func (k *deadConsumer) takeOver(s *learn.Stand) (lost, twice int64) {
	done := map[string]bool{}
	for _, id := range k.dies.Which(ledger.Effect) {
		done[ledger.FormatID(id)] = true
	}
	if k.q != nil {
		c := s.Consumer(k.q)
		keeps := k.q.Capabilities().Guarantee == queue.AtLeastOnce
		for {
			wait := 200 * time.Millisecond
			switch {
			case keeps && len(done) < len(k.sent): // for the lease of the dead, and for a rebalance
				wait = 10 * time.Second
			case keeps: // for what would come twice
				wait = 500 * time.Millisecond
			}
			ds := s.TakeFor(c, 1, wait)
			if len(ds) == 0 {
				break
			}
			s.Must(c.Ack(s.Context(), ds...))
			twice += count(done[ds[0].ID])
			done[ds[0].ID] = true
		}
		s.Must(c.Close())
	}
	return int64(len(k.sent) - len(done)), twice
}
