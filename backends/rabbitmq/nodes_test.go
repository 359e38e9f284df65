package rabbitmq

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAURLNamesSeveralNodes(t *testing.T) {
	u, err := url.Parse("amqp://u:p@one,two:7/vhost?queue=q")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseTarget(u)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"amqp://u:p@one/vhost", "amqp://u:p@two:7/vhost"}, got.nodes); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if got.addr != "one:5672,two:7" || got.user != "u" || got.vhost != "vhost" {
		t.Errorf("got %s, user %s, vhost %s, want those of the URL", got.addr, got.user, got.vhost)
	}
}

func TestANodeThatIsNotThereIsPassedOver(t *testing.T) {
	b := lab(t)
	raw := b.QueueURL("amqp", "second-node", "settle=0s")
	raw = strings.Replace(raw, "@", "@127.0.0.1:1,", 1)
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Open(soon(t), u)
	if err != nil {
		t.Fatalf("got %v, want the node that is there", err)
	}
	if err := q.Delete(soon(t)); err != nil {
		t.Error(err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

func TestMembersBelongToAQuorumQueue(t *testing.T) {
	u, err := url.Parse("amqp://h/?members=3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse(u); err == nil || !strings.Contains(err.Error(), "type=quorum") {
		t.Errorf("got %v, want an error about the type", err)
	}
}
