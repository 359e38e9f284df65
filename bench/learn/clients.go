package learn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
)

// Redis is a client behind the proxy that sends each command once.
func (s *Stand) Redis() *redis.Client { return s.redisAt(s.Proxy("redis").Addr()) }

// RedisUnseen is one that is not in the transcript: to prepare and to look.
func (s *Stand) RedisUnseen() *redis.Client { return s.redisAt("") }

func (s *Stand) redisAt(addr string) *redis.Client {
	o, err := redis.ParseURL(s.Broker("redis").URL())
	s.Must(err)
	if addr != "" {
		o.Addr = addr
	}
	o.MaxRetries, o.DisableIdentity = -1, true
	c := redis.NewClient(o)
	s.After(c.Close)
	return c
}

// Do sends a command as it is written, and returns the answer. An error of Redis
// ends the lesson; nil is no error.
func (s *Stand) Do(c redis.Cmdable, args ...any) any {
	v, err := s.Ask(c, args...)
	s.Must(err)
	return v
}

// Ask is Do for a command that Redis may refuse.
func (s *Stand) Ask(c redis.Cmdable, args ...any) (any, error) {
	d, ok := c.(interface {
		redis.Cmdable
		Process(ctx context.Context, cmd redis.Cmder) error
	})
	if !ok {
		s.Fail("this client takes no commands as they are written")
	}
	cmd := redis.NewCmd(s.ctx, args...)
	_ = d.Process(s.ctx, cmd) // the error is the command's too
	v, err := cmd.Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return v, err
}

// Int is Do for an answer that is a number.
func (s *Stand) Int(c redis.Cmdable, args ...any) int64 {
	switch v := s.Do(c, args...).(type) {
	case int64:
		return v
	case nil:
		return 0
	case string:
		var n int64
		_, err := fmt.Sscan(v, &n)
		s.Must(err)
		return n
	default:
		s.Fail("%v is answered by %v, which is no number", args, v)
		return 0
	}
}

// RabbitMQ is a connection behind the proxy.
func (s *Stand) RabbitMQ() *amqp.Connection {
	u, err := url.Parse(s.Broker("rabbitmq").URL())
	s.Must(err)
	u.Host = s.Proxy("rabbitmq").Addr()
	c, err := amqp.Dial(u.String())
	s.Must(err)
	s.After(func() error { return forgive(c.Close()) })
	return c
}

// KafkaAddr is where clients of Kafka connect to, behind the proxy.
func (s *Stand) KafkaAddr() string { return s.Proxy("kafka").Addr() }

// SQL is a database of the lesson's own in PostgreSQL, behind the proxy.
func (s *Stand) SQL() *sql.DB {
	db, err := sql.Open("pgx", s.SQLURL())
	s.Must(err)
	s.After(db.Close)
	return db
}

// SQLURL is the URL of a new database, likewise.
func (s *Stand) SQLURL() string {
	b := s.Broker("postgres")
	admin, err := sql.Open("pgx", b.URL())
	s.Must(err)
	defer admin.Close()
	s.names++
	name := fmt.Sprintf("l%d_%s", s.names, s.ID)
	_, err = admin.ExecContext(s.ctx, "CREATE DATABASE "+name)
	s.Must(err)
	s.After(func() error {
		admin, err := sql.Open("pgx", b.URL())
		if err == nil {
			_, err = admin.Exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
			admin.Close()
		}
		return forgive(err)
	})
	u, err := url.Parse(b.URL())
	s.Must(err)
	u.Host, u.Path = s.Proxy("postgres").Addr(), "/"+name
	return u.String()
}
