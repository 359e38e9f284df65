package trial

import (
	"fmt"
	"strings"
)

// Setting is a backend with its client's knobs and its broker's durability.
type Setting struct {
	Backend string // as in backends.All
	Name    string // the part after the slash
	Broker  string // the broker program: "", "redis", "rabbitmq", "kafka"
	Conf    string // the broker's settings file in compose/, by name
	Query   string // the parameters of the queue's URL that make this setting
	Profile string // what an accepted message survives; see Profiles
	Promise string // one line for people
}

// String is the setting's name, as in the oracle: backend/setting.
func (s Setting) String() string { return s.Backend + "/" + s.Name }

// Settings lists every setting, in the order in which tables show them.
func Settings() []Setting {
	const (
		none     = "a killed Redis forgets everything"
		everysec = "survives a killed Redis; a power cut loses about a second"
		always   = "synced before the reply"
	)
	return []Setting{
		{"memory", "bounded", "", "", "capacity=1024&full=block", ProfileMemory, "lives and dies with its process"},
		{"redis-list", "no-persistence", "redis", "no-persistence", "", ProfileAtMostOnce, "BRPOP removes what it delivers; " + none},
		{"redis-list", "aof-everysec", "redis", "aof-everysec", "", ProfileAtMostOnce, "BRPOP removes what it delivers; " + everysec},
		{"redis-list", "aof-always", "redis", "aof-always", "", ProfileAtMostOnce, "BRPOP removes what it delivers; " + always},
		{"redis-pubsub", "default", "redis", "no-persistence", "", ProfileAtMostOnce, "whoever listens at that moment hears it; nothing is stored"},
		{"redis-streams", "no-persistence", "redis", "no-persistence", "", ProfileMemory, "pending until acked; " + none},
		{"redis-streams", "aof-everysec", "redis", "aof-everysec", "", ProfileDiskAsync, "pending until acked; " + everysec},
		{"redis-streams", "aof-always", "redis", "aof-always", "", ProfileDiskSync, "pending until acked; " + always},
		{"rabbitmq", "transient", "rabbitmq", "default", "persistent=false&confirm=false&auto-ack=true", ProfileAtMostOnce, "no confirms, auto-ack, in memory: nothing is promised"},
		{"rabbitmq", "classic", "rabbitmq", "default", "type=classic", ProfileDiskSync, "persistent, confirmed, acked by hand; classic queue"},
		{"rabbitmq", "quorum", "rabbitmq", "default", "type=quorum", ProfileDiskSync, "persistent, confirmed, acked by hand; quorum queue on one node"},
		{"kafka", "acks-0", "kafka", "default", "acks=0", ProfileAtMostOnce, "the broker does not answer: nothing is promised"},
		{"kafka", "acks-1", "kafka", "default", "acks=1", ProfileDiskAsync, "the leader answered from its page cache"},
		{"kafka", "acks-all", "kafka", "default", "acks=all", ProfileDiskAsync, "every in-sync replica answered; one node here"},
	}
}

// SelectSettings returns the settings of a comma-separated list of backends or
// backend/setting names; "all" and "" are every setting.
func SelectSettings(list string) ([]Setting, error) {
	all := Settings()
	if list == "" || list == "all" {
		return all, nil
	}
	var chosen []Setting
	for _, want := range strings.Split(list, ",") {
		want = strings.TrimSpace(want)
		n := len(chosen)
		for _, s := range all {
			if s.Backend == want || s.String() == want {
				chosen = append(chosen, s)
			}
		}
		if len(chosen) == n {
			var names []string
			for _, s := range all {
				if len(names) == 0 || names[len(names)-1] != s.Backend {
					names = append(names, s.Backend)
				}
			}
			return nil, fmt.Errorf("unknown backend or setting %q: the backends are %s; `queuelab list` shows the settings", want, strings.Join(names, ", "))
		}
	}
	return chosen, nil
}
