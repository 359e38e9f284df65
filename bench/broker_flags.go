package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"queuelab/bench/broker"
	"queuelab/bench/learn"
)

// brokerFlags let a user bring brokers along: one for each kind that the lab can
// start, and for each cluster.
type brokerFlags struct {
	RedisURL    string `name:"redis" placeholder:"URL" help:"Use this Redis instead of starting one; it cannot be killed, and is not."`
	RabbitMQURL string `name:"rabbitmq" placeholder:"URL" help:"Use this RabbitMQ, likewise."`
	KafkaURL    string `name:"kafka" placeholder:"URL" sep:"none" help:"Use this Kafka, likewise."`
	PostgresURL string `name:"postgres" placeholder:"URL" help:"Use this PostgreSQL for effects and orders, and for queues in it."`
	NATSURL     string `name:"nats" placeholder:"URL" help:"Use this NATS, likewise."`

	Kafka3URL        string `name:"kafka-3" placeholder:"URL" sep:"none" help:"Use this Kafka of three brokers: kafka://HOST:PORT,HOST:PORT,HOST:PORT. No node of it is killed; faults of clients strike it alone."`
	RabbitMQ3URL     string `name:"rabbitmq-3" placeholder:"URL" sep:"none" help:"Use this RabbitMQ of three nodes, likewise: amqp://USER:PASSWORD@HOST:PORT,HOST:PORT,HOST:PORT/."`
	RedisSentinelURL string `name:"redis-sentinel" placeholder:"URL" sep:"none" help:"Use this Redis behind Sentinels, likewise: redis://HOST:PORT/0?master=NAME&sentinel=HOST:PORT,HOST:PORT."`
}

// external are the URLs that were given, by kind.
func (f brokerFlags) external() map[string]string {
	m := map[string]string{
		"redis": f.RedisURL, "rabbitmq": f.RabbitMQURL, "kafka": f.KafkaURL, "postgres": f.PostgresURL, "nats": f.NATSURL,
		"kafka-3": f.Kafka3URL, "rabbitmq-3": f.RabbitMQ3URL, "redis-sentinel": f.RedisSentinelURL,
	}
	maps.DeleteFunc(m, func(_, url string) bool { return url == "" })
	return m
}

// answer asks each broker that was given by URL, and that lessons share, whether it
// serves: a wrong URL is one sentence, and no lesson that measures something else.
func (f brokerFlags) answer(ctx context.Context, chosen []learn.Lesson) error {
	given := f.external()
	for _, kind := range slices.Sorted(maps.Keys(given)) {
		shares := func(n learn.Need) bool { return n.Kind == kind && !n.Own && !n.Storage }
		if !slices.ContainsFunc(chosen, func(l learn.Lesson) bool { return slices.ContainsFunc(l.Needs, shares) }) {
			continue
		}
		b, err := broker.External(kind, given[kind])
		if err == nil {
			err = b.Ready(ctx)
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", kind, err)
		}
	}
	return nil
}
