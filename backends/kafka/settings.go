package kafka

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"queuelab/backends/internal/params"
)

// acksAll is how the protocol writes acks=all.
const acksAll = -1

// settings is what a URL asks for; the package doc says what each is.
type settings struct {
	hosts []string
	topic string
	group string // as the broker knows it
	franz bool   // franz-go instead of kafka-go

	partitions, replication           int
	minInSync                         int // 0: a majority, or what an existing topic has
	partitionsGiven, replicationGiven bool
	flush                             bool
	acks                              int16

	linger  time.Duration
	batch   int
	timeout time.Duration

	session, heartbeat, maxWait time.Duration
	fetchBytes                  int
	prefetch                    int
	maxUncommitted              int

	commit         string // when offsets are committed
	commitInterval time.Duration
	retries        int // of the client's own producer; 0: it is not used
}

// When the offsets of what Receive returned are committed.
const (
	commitAfter  = "after"  // with their Ack
	commitBefore = "before" // before Receive returns them
	commitAuto   = "auto"   // by a timer
	commitPoll   = "poll"   // by a later Receive
)

// periodic reports whether offsets are committed now and then, whatever the
// handler has done.
func (s settings) periodic() bool { return s.commit == commitAuto || s.commit == commitPoll }

func parse(u *url.URL) (settings, error) {
	var s settings
	if u.User != nil {
		return s, errors.New("kafka: user and password are not supported")
	}
	for _, h := range strings.Split(u.Host, ",") {
		if h == "" {
			return s, errors.New("kafka: the URL names no host, want kafka://host:9092/topic")
		}
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), "9092")
		}
		s.hosts = append(s.hosts, h)
	}
	s.topic = strings.TrimPrefix(u.Path, "/")
	if err := params.CheckName(s.topic); err != nil {
		return s, fmt.Errorf("kafka: the URL's path is the topic %q: want %w", s.topic, err)
	}

	p := params.New(u)
	p.Preset(map[string]map[string]string{
		"latency":    {"linger": "0s", "prefetch": "100"},
		"throughput": {"batch": "5000", "prefetch": "5000", "fetch-bytes": "4194304"},
	})
	s.franz = p.OneOf("client", "kafka-go", "franz") == "franz"
	s.group = s.topic + "." + p.Name("group", "default")
	s.partitions = p.Int("partitions", 4, 1, 10_000)
	s.replication = p.Int("replication", 1, 1, 100)
	s.minInSync = p.Int("min-insync", 0, 1, 100)
	s.partitionsGiven = u.Query().Has("partitions")
	s.replicationGiven = u.Query().Has("replication")
	s.flush = p.OneOf("flush", "0", "1") == "1"
	if acks := p.OneOf("acks", "all", "1", "0"); acks == "all" {
		s.acks = acksAll
	} else {
		n, _ := strconv.Atoi(acks)
		s.acks = int16(n)
	}
	s.linger = p.Duration("linger", 0, 0, time.Minute)
	s.batch = p.Int("batch", 2000, 1, 1_000_000)
	s.timeout = p.Duration("timeout", 5*time.Second, 10*time.Millisecond, 10*time.Minute)
	s.session = p.Duration("session", 6*time.Second, 100*time.Millisecond, time.Hour)
	s.heartbeat = p.Duration("heartbeat", min(s.session/5, 500*time.Millisecond), 10*time.Millisecond, time.Hour)
	s.maxWait = p.Duration("max-wait", 500*time.Millisecond, time.Millisecond, time.Minute)
	s.fetchBytes = p.Int("fetch-bytes", 1<<20, 1<<10, 1<<30)
	s.prefetch = p.Int("prefetch", 1000, 1, 1_000_000)
	s.maxUncommitted = p.Int("max-uncommitted", 10_000, 1, 10_000_000)
	s.commit = p.OneOf("commit", commitAfter, commitBefore, commitAuto, commitPoll)
	s.commitInterval = p.Duration("commit-interval", 5*time.Second, time.Millisecond, time.Hour)
	s.retries = p.Int("retries", 0, 0, 100)
	if err := p.Err(); err != nil {
		return s, fmt.Errorf("kafka: %w", err)
	}
	switch {
	case u.Query().Has("commit-interval") && !s.periodic():
		return s, fmt.Errorf("kafka: commit-interval has no meaning with commit=%s: leave it out, or use commit=auto or commit=poll", s.commit)
	case s.retries > 0 && s.franz && s.acks != acksAll:
		return s, errors.New("kafka: retries with client=franz is its idempotent producer, which wants acks=all")
	}
	if s.minInSync > s.replication {
		return s, fmt.Errorf("kafka: min-insync=%d is more than replication=%d: nothing would ever be accepted", s.minInSync, s.replication)
	}
	if s.heartbeat >= s.session {
		return s, fmt.Errorf("kafka: heartbeat=%v must be shorter than session=%v", s.heartbeat, s.session)
	}
	return s, nil
}
