package broker

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var kafkaVersionLine = regexp.MustCompile(`Kafka version: ([0-9][^\s,]*)`)

// kafkaVersionOf reads the line that Kafka logs when it starts, since nothing in
// its protocol tells. Without the log, of one that is not ours, it is named by
// what that broker can do: see metadataVersion.
func kafkaVersionOf(ctx context.Context, rawURL, log string) (string, error) {
	if m := kafkaVersionLine.FindStringSubmatch(log); m != nil {
		return m[1], nil
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", err
	}
	// The client would not tell soon that nobody listens.
	addr := strings.Split(u.Host, ",")[0]
	probe, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	probe.Close()
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RequestRetries(0), kgo.DisableClientMetrics())
	if err != nil {
		return "", err
	}
	defer c.Close()
	q := kmsg.NewPtrApiVersionsRequest()
	q.ClientSoftwareName, q.ClientSoftwareVersion = "queuelab", "1" // without a name it is refused
	r, err := q.RequestWith(ctx, c.SeedBrokers()[0])
	if err != nil {
		return "", err
	}
	for _, f := range r.SupportedFeatures {
		if f.Name == "metadata.version" {
			return metadataVersion(f.MaxVersion), nil
		}
	}
	return "unknown", nil
}

// metadataVersion names the highest level of the cluster's metadata that a
// broker can work with. It grows with nearly every release of Kafka: a broker
// whose level is 4.3-IV0 is a 4.3 of some patch. A level that is not known here
// is named by its number, and what else speaks Kafka's protocol may have none.
func metadataVersion(level int16) string {
	const first = 7 // of the first Kafka for which this mode was fit for use
	names := strings.Fields("3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 " +
		"3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 " +
		"4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0")
	if i := int(level) - first; i >= 0 && i < len(names) {
		return "metadata.version " + names[i]
	}
	return fmt.Sprintf("metadata.version level %d", level)
}
