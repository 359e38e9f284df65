package lessons

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"queuelab/backends"
	"queuelab/bench/broker"
	"queuelab/bench/learn"
	"queuelab/queue"
)

func criterionCluster() learn.Lesson {
	return learn.Lesson{
		Number: 49, Name: "criterion-cluster", Topic: learn.Criteria,
		Question: learn.Text{
			EN: "Cluster: the leading node dies while its followers lag, and another takes over. What becomes of the messages that it had accepted?",
			ZH: "集群：主节点在从节点落后时宕机，由别的节点接替，它已经接受的消息会怎样？",
		},
		Choices: []learn.Choice{
			{Text: learn.Text{EN: "Nothing happens to them: a cluster keeps what it has accepted.", ZH: "不会丢：集群接受了的就留得住。"},
				If: learn.Conditions{"lost-redis": learn.Is(0), "lost-kafka-1": learn.Is(0)}},
			{Text: learn.Text{EN: "Where the leader answers alone they are lost; where a majority has to have them it accepts nothing that it could lose.", ZH: "主节点独自应答的会丢；要多数副本都有才应答的，丢得了的它根本不接受。"},
				If: learn.Conditions{
					"lost-redis": learn.AtLeast(1), "lost-kafka-1": learn.AtLeast(1),
					"lost-redis-wait": learn.Is(0), "lost-kafka-all": learn.Is(0), "lost-rabbitmq-quorum": learn.Is(0),
				}},
			{Text: learn.Text{EN: "They are lost everywhere: replication is behind in every cluster.", ZH: "都会丢：哪个集群的复制都有延迟。"},
				If: learn.Conditions{"lost-redis": learn.AtLeast(1), "lost-kafka-all": learn.AtLeast(1), "lost-rabbitmq-quorum": learn.AtLeast(1)}},
		},
		Right: 1,
		Needs: []learn.Need{
			{Kind: "redis-sentinel", Setting: "aof-everysec", Own: true},
			{Kind: "kafka-3", Setting: "cluster", Own: true},
			{Kind: "rabbitmq-3", Setting: "cluster", Own: true},
		},
		Takes: 25 * time.Second,
		Try: func(s *learn.Stand) {
			s.Step("Redis: a master, a replica, three Sentinels; the same list with and without WAIT 1.", "Redis：一主一从三哨兵，同样的 List，不等副本与 WAIT 1 各一个。")
			b := s.Broker("redis-sentinel")
			// More than the kernel holds of a link that stands still: it would deliver that after all.
			plain := replica{name: "redis", url: b.QueueURL("redis+list", s.Name("plain"), ""), n: 300, bytes: 64 << 10}
			wait := replica{name: "redis-wait", url: b.QueueURL("redis+list", s.Name("wait"), "wait=1&timeout=1s"), n: 20}
			plain.look = func(leader *broker.Broker) {
				r := redis.NewClient(&redis.Options{Addr: s.Node(leader).Addr(), DisableIdentity: true})
				s.After(r.Close)
				for _, list := range s.Do(r, "KEYS", "*"+s.ID+"*").([]any) {
					s.Do(r, "LLEN", list)
				}
			}
			failover(s, b, plain, wait)

			s.Step("Kafka: three nodes, one partition on all of them; acks=1 and acks=all with min.insync.replicas=2.", "Kafka：三节点三副本一个分区，acks=1 与 acks=all（min.insync.replicas=2）。")
			b = s.Broker("kafka-3")
			one := replica{name: "kafka-1", url: b.QueueURL("kafka", s.Name("one"), "partitions=1&replication=3&acks=1&timeout=2s"), n: 200, calls: 200}
			s.Open(one.url)
			all := ledBySame(s, b, one.url, func(name string) string {
				return b.QueueURL("kafka", s.Name(name), "partitions=1&replication=3&acks=all&timeout=2s")
			})
			one.look = func(leader *broker.Broker) {
				c, err := net.Dial("tcp", s.Node(leader).Addr())
				s.Must(err)
				s.After(c.Close)
				s.Eventually("the new leader to know that it is one", 10*time.Second, func() bool {
					_, _, err := kafka.NewConn(c, s.Name("one"), 0).ReadOffsets()
					return err == nil
				})
			}
			failover(s, b, one, replica{name: "kafka-all", url: all, n: 20})

			s.Step("RabbitMQ: three nodes, a quorum queue on all of them.", "RabbitMQ：三节点，仲裁队列。")
			b = s.Broker("rabbitmq-3")
			quorum := replica{name: "rabbitmq-quorum", url: b.QueueURL("amqp", s.Name("quorum"), "type=quorum&members=3&confirm-timeout=2s"), n: 20}
			u, err := url.Parse(quorum.url)
			s.Must(err)
			var hosts []string
			for _, n := range b.Nodes() {
				hosts = append(hosts, s.Node(n).Addr())
			}
			u.Host = strings.Join(hosts, ",")
			quorum.through = u.String()
			failover(s, b, quorum)
		},
		Expect: learn.Conditions{
			"accepted-redis": learn.Is(300), "accepted-kafka-1": learn.AtLeast(100), "accepted-redis-wait": learn.Is(0),
			"accepted-kafka-all": learn.Is(0), "accepted-rabbitmq-quorum": learn.Is(0),
		},
		Why: learn.Text{
			EN: "While its followers stood still, a Redis master accepted {accepted-redis} messages and a Kafka leader with acks=1 {accepted-kafka-1}; of all that they had ever accepted {lost-redis} and {lost-kafka-1} were unknown to the followers that took over. WAIT 1, acks=all with two in sync, and a quorum queue accepted {accepted-redis-wait}, {accepted-kafka-all} and {accepted-rabbitmq-quorum} meanwhile: their publishers were told that it is unknown. What those three had accepted before was all there: {lost-redis-wait}, {lost-kafka-all} and {lost-rabbitmq-quorum} lost.",
			ZH: "从节点停住时，Redis 主节点接受了 {accepted-redis} 条，acks=1 的 Kafka leader 接受了 {accepted-kafka-1} 条；它们接受过的消息里，接替的节点没见过的有 {lost-redis} 条和 {lost-kafka-1} 条。WAIT 1、acks=all 加两个同步副本、仲裁队列，这期间分别接受 {accepted-redis-wait}、{accepted-kafka-all}、{accepted-rabbitmq-quorum} 条：发送方得到的是“未知”。这三种先前接受的都在：丢 {lost-redis-wait}、{lost-kafka-all}、{lost-rabbitmq-quorum} 条。",
		},
		Say: learn.Text{
			EN: "A cluster gives availability; whether it keeps messages depends on who has them before the answer. Kafka with acks=all and min.insync.replicas=2 and RabbitMQ's quorum queues ask a majority, and stop accepting without one; Redis answers first and replicates afterwards, unless one waits with WAIT. So with Redis the database stays the truth.",
			ZH: "集群给的是可用性，消息留不留得住要看应答之前谁已经有了。Kafka 的 acks=all 加 min.insync.replicas=2 和 RabbitMQ 仲裁队列都要多数副本，凑不齐就不再接受；Redis 先应答后复制，除非用 WAIT 等副本。所以用 Redis 时以数据库为准。",
		},
		Further: []learn.Link{
			{Text: learn.Text{EN: "Redis replication and what WAIT does not promise", ZH: "Redis 复制与 WAIT 的边界"}, URL: "https://redis.io/docs/latest/commands/wait/"},
			{Cell: "redis-sentinel/list leader-kill"}, {Cell: "kafka-3/acks-1 leader-kill"}, {Cell: "kafka-3/acks-all leader-kill"}, {Cell: "rabbitmq-3/quorum leader-kill"},
		},
	}
}

// replica is a queue that several nodes have.
type replica struct {
	name    string // in figures
	url     string
	through string                    // the same behind proxies, if it can be
	n       int                       // messages that are published while the followers stand still
	bytes   int                       // of each
	look    func(next *broker.Broker) // asks the new leader behind a proxy; may be nil
	calls   int                       // that they are published in, 0 is 1: followers that had asked get what the first ones bring
}

// before is how many are accepted while all is well.
const before = 20

// failover publishes to queues of a cluster while its followers stand still, kills
// the leader that they have in common, and notes what was accepted and is gone.
func failover(s *learn.Stand, b *broker.Broker, rs ...replica) {
	publish := func(p queue.Publisher, from, n, bytes int) (accepted []string) {
		ms := s.Messages(from + n)[from:]
		for i := range ms {
			ms[i].Body = append(ms[i].Body, make([]byte, bytes)...)
		}
		err := p.Publish(s.Context(), ms...)
		for i, m := range ms {
			if queue.OutcomeOf(err, i) == queue.Accepted {
				accepted = append(accepted, m.ID)
			}
		}
		return accepted
	}
	accepted := map[string][]string{}
	publishers := map[string]queue.Publisher{}
	for _, r := range rs {
		publishers[r.name] = s.Publisher(s.Open(cmp.Or(r.through, r.url)))
		s.Must(b.AwaitReplicas(s.Context(), r.url))
		if accepted[r.name] = publish(publishers[r.name], 0, before, 0); len(accepted[r.name]) != before {
			s.Fail("%s: %d of %d messages were accepted while all was well", r.name, len(accepted[r.name]), before)
		}
	}
	leader, err := b.Leader(s.Context(), rs[0].url)
	s.Must(err)
	followers(s, b, leader, (*broker.Broker).Pause)
	for _, r := range rs {
		var late []string
		for each, i := r.n/max(1, r.calls), 0; i < r.n; i += each {
			late = append(late, publish(publishers[r.name], before+i, each, r.bytes)...)
		}
		s.Count("accepted-"+r.name, int64(len(late)), r.name+": accepted while the followers stood still, of "+strconv.Itoa(r.n), r.name+"：从节点停住时接受的，共发 "+strconv.Itoa(r.n))
		accepted[r.name] = append(accepted[r.name], late...)
	}
	s.Must(leader.Kill(s.Context()))
	followers(s, b, leader, (*broker.Broker).Resume)
	for _, r := range rs {
		next, err := b.AwaitLeader(s.Context(), r.url, leader)
		s.Must(err)
		if r.look != nil {
			r.look(next)
		}
		s.Count("lost-"+r.name, missing(accepted[r.name], readAll(s, cmp.Or(r.through, r.url))), r.name+": accepted before or then, and gone", r.name+"：接受过却没了的")
	}
}

// followers does the same to all nodes but one.
func followers(s *learn.Stand, b *broker.Broker, leader *broker.Broker, do func(*broker.Broker, context.Context) error) {
	for _, n := range b.Nodes() {
		if n != leader {
			s.Must(do(n, s.Context()))
		}
	}
}

// readAll reads what the nodes that are left have. Not all of them know at once who
// leads.
func readAll(s *learn.Stand, queueURL string) (all []string) {
	var q queue.Queue
	s.Eventually("the new leader to be found", 15*time.Second, func() bool {
		var err error
		q, err = backends.Open(s.Context(), queueURL)
		return err == nil
	})
	s.After(q.Close)
	there := int(waiting(s, q))
	c := s.Consumer(q)
	s.Eventually("the new leader to deliver what it has", 15*time.Second, func() bool {
		ds, _ := c.Receive(s.Context(), there+1-len(all)) // it goes on after an error
		all = append(all, ids(ds)...)
		return len(all) >= there
	})
	return all
}

// ledBySame makes topics until one has the same leader.
func ledBySame(s *learn.Stand, b *broker.Broker, queueURL string, another func(name string) string) string {
	want, err := b.Leader(s.Context(), queueURL)
	s.Must(err)
	for i := range 10 {
		u := another("all" + strconv.Itoa(i))
		s.Open(u)
		got, err := b.Leader(s.Context(), u)
		s.Must(err)
		if got == want {
			return u
		}
	}
	s.Fail("no topic out of 10 has the leader that another one has")
	return ""
}
