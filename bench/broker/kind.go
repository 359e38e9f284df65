package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"queuelab/compose"
)

// kind is one broker program: how it is found, laid out and asked.
type kind struct {
	name     string
	setting  string // what "" and "default" stand for
	ports    int    // how many it needs, the first is for clients
	storage  bool   // see Options.Storage
	network  bool   // see Options.Network
	conf     string // the folder of its settings; "": called after it
	patience time.Duration
	url      func(port int) string

	available func() error                      // nil: it can be started natively
	once      func(ctx context.Context, k kind) // what makes later starts on this machine faster; may be nil
	plan      func(layout) (plan, error)
	// assemble makes the nodes of a cluster; nil: it is one node.
	assemble func(ctx context.Context, k kind, setting string) (host, error)

	// given says what a URL lacks that somebody brings along; may be nil.
	given func(u *url.URL) error

	// ready asks once, in the broker's own protocol, whether it serves. The
	// identity, where there is one, tells ours from another that got our port.
	ready func(ctx context.Context, url, identity string) error
	// found makes what the URL promises and a new broker does not have.
	found func(ctx context.Context, url string) error
	// version of the broker. Kafka's protocol does not tell; the log does.
	version  func(ctx context.Context, url, log string) (string, error)
	settings func(ctx context.Context, url string) (map[string]string, error)
}

// Kinds lists the brokers that can be started.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

func kinds() []kind {
	return []kind{redisKind(), rabbitKind(), kafkaKind(), postgresKind(), natsKind()}
}

func lookup(name string) (kind, error) {
	all := append(kinds(), clusterKinds()...)
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, fmt.Errorf("unknown broker %q: there are %s", name, strings.Join(append(Kinds(), Clusters()...), ", "))
	}
	return all[i], nil
}

func (k kind) settingsFile(setting string) (string, []byte, error) {
	if setting == "" || setting == "default" {
		setting = k.setting
	}
	return compose.SettingsFile(cmp.Or(k.conf, k.name), setting)
}

// unavailable says what is missing and how to get it.
func unavailable(missing, remedy string) error {
	return fmt.Errorf("%w: %s; %s", ErrUnavailable, missing, remedy)
}

const makeSetup = "`make setup` installs what is missing, or start Docker"

// lookProgram finds a program on the PATH and in the places where distributions
// put it: the glob's last match, so that the newest of several versions wins.
func lookProgram(name string, globs ...string) (string, error) {
	for _, g := range globs {
		if found, _ := filepath.Glob(g); len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	p, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", unavailable(name+" is not installed", makeSetup)
	}
	return filepath.Abs(p)
}
