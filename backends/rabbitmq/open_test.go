package rabbitmq

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"queuelab/queue"
)

func TestOpenSaysWhatIsWrongInOneSentence(t *testing.T) {
	u, err := url.Parse(lab(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := ln.Addr().String()
	ln.Close()
	mine := nameOf(t)
	open(t, "type=classic")

	for _, c := range []struct {
		name, url string
		want      []string
	}{
		{"nobody listens", "amqp://guest:guest@" + nobody + "/", []string{"nothing listens at " + nobody}},
		{"the password is wrong", "amqp://guest:hunter2@" + u.Host + "/", []string{`user "guest"`, "password", u.Host}},
		{"the virtual host is unknown", "amqp://guest:guest@" + u.Host + "/nope", []string{`virtual host "nope"`}},
		{"the type differs", u.String() + "?type=quorum&queue=" + mine, []string{`queue "` + mine + `.workers" exists with type classic`, "type=classic"}},
		{"a parameter is unknown", u.String() + "?prefech=1", []string{`"prefech"`, "prefetch"}},
		{"a prefetch of 0 has no bound", u.String() + "?prefetch=0", []string{"prefetch", "1 to 65535"}},
		{"a quorum queue stores always", u.String() + "?type=quorum&persistent=false", []string{"persistent=false"}},
		{"a name is the broker's", u.String() + "?queue=amq.fanout", []string{"amq."}},
		{"names are too long together", u.String() + "?queue=" + strings.Repeat("q", 200) + "&group=" + strings.Repeat("g", 60), []string{"261 bytes"}},
		{"the port is no number", "amqp://guest:hunter2@127.0.0.1:99999/", []string{"99999"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := url.Parse(c.url)
			if err != nil {
				t.Fatal(err)
			}
			q, err := Open(soon(t), u)
			if err == nil {
				q.Close()
				t.Fatal("got nil, want an error")
			}
			t.Log(err)
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want it to say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q shows the password", err)
			}
		})
	}
}

func TestCapabilitiesAreTrueForTheirSettings(t *testing.T) {
	always := queue.Capabilities{Groups: true, OrderedPerKey: true, Stored: true, Shared: true}
	for _, c := range []struct {
		query, version string
		want           func(*queue.Capabilities)
	}{
		{"", "3.10.8", func(c *queue.Capabilities) {
			c.Guarantee, c.Confirm, c.Durable, c.Nack, c.Attempts = queue.AtLeastOnce, queue.ConfirmDisk, true, true, queue.FlaggedByBroker
		}},
		{"type=classic", "4.1.0", func(c *queue.Capabilities) {
			c.Guarantee, c.Confirm, c.Durable, c.Nack, c.Attempts = queue.AtLeastOnce, queue.ConfirmOS, true, true, queue.FlaggedByBroker
		}},
		{"", "", func(c *queue.Capabilities) {
			c.Guarantee, c.Confirm, c.Durable, c.Nack, c.Attempts = queue.AtLeastOnce, queue.ConfirmOS, true, true, queue.FlaggedByBroker
		}},
		{"type=quorum", "4.1.0", func(c *queue.Capabilities) {
			c.Guarantee, c.Confirm, c.Durable, c.Nack, c.Attempts = queue.AtLeastOnce, queue.ConfirmDisk, true, true, queue.CountedByBroker
		}},
		{"persistent=false", "3.10.8", func(c *queue.Capabilities) {
			c.Guarantee, c.Confirm, c.Nack, c.Attempts = queue.AtLeastOnce, queue.ConfirmMemory, true, queue.FlaggedByBroker
		}},
		{"confirm=false", "3.10.8", func(c *queue.Capabilities) {
			c.Guarantee, c.Confirm, c.Nack, c.Attempts = queue.AtLeastOnce, queue.ConfirmNone, true, queue.FlaggedByBroker
		}},
		{"persistent=false&confirm=false&auto-ack=true", "3.10.8", func(c *queue.Capabilities) {
			c.Guarantee, c.Confirm, c.Attempts = queue.AtMostOnce, queue.ConfirmNone, queue.FlaggedByBroker
		}},
	} {
		t.Run(c.query+" on "+c.version, func(t *testing.T) {
			want := always
			c.want(&want)
			for _, preset := range []string{"", "latency", "throughput"} {
				query := c.query
				if preset != "" {
					query += "&preset=" + preset
				}
				conf, err := parse(&url.URL{Scheme: "amqp", Host: "127.0.0.1", RawQuery: query})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, conf.capabilities(c.version)); diff != "" {
					t.Errorf("preset %q (-want +got):\n%s", preset, diff)
				}
			}
		})
	}
}

func TestExplicitParametersWinOverThePreset(t *testing.T) {
	conf, err := parse(&url.URL{Scheme: "amqp", Host: "127.0.0.1", RawQuery: "preset=throughput&prefetch=7"})
	if err != nil {
		t.Fatal(err)
	}
	if conf.prefetch != 7 || conf.window != 1000 {
		t.Errorf("got prefetch %d and window %d, want 7 and 1000", conf.prefetch, conf.window)
	}
}

func TestEachGroupGetsEverythingSinceItExists(t *testing.T) {
	first := open(t)
	p := newPublisher(t, first)
	publish(t, p, messages("early", 3)...)
	second := open(t, "group=audit")
	publish(t, p, messages("late", 2)...)
	a, b := take(t, newConsumer(t, first), 5), take(t, newConsumer(t, second), 2)
	if got := idsOf(b); got[0] != "late-0" && got[0] != "late-1" {
		t.Errorf("the second group got %v, want the late ones", got)
	}
	if len(a) != 5 {
		t.Errorf("the first group got %v, want all five", idsOf(a))
	}
}
