package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"queuelab/backends"
)

// queueURL is what to open for a queue's name or URL: the bare name of a queue in
// Redis is one in the Redis of admission, where that is named.
func queueURL(name, redisURL string) (string, error) {
	b, err := backends.Lookup(name)
	if err != nil {
		return "", err
	}
	if strings.Contains(name, "://") || b.Broker != "redis" || redisURL == "" {
		return name, nil
	}
	u, err := url.Parse(b.DefaultURL)
	if err != nil {
		return "", fmt.Errorf("queue %s: %w", name, err)
	}
	scheme, _, _ := strings.Cut(redisURL, "://")
	if scheme != "redis" {
		return "", fmt.Errorf("--queue=%s alone is a queue in the Redis of --redis, which is one of %s://: queues speak to one server over redis://; give the queue's own URL, such as %s", name, scheme, b.DefaultURL)
	}
	o, err := redis.ParseURL(redisURL)
	if err != nil {
		return "", fmt.Errorf("--redis: want a URL such as redis://127.0.0.1:6379/0, which --queue=%s goes to as well", name)
	}
	u.Host, u.Path = o.Addr, "/"+strconv.Itoa(o.DB)
	if o.Username != "" || o.Password != "" {
		u.User = url.UserPassword(o.Username, o.Password)
	}
	return u.String(), nil
}
