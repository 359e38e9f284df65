package trial

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Way is how the service sells: its architecture, apart from the queue.
type Way struct {
	Name         string
	What         string   // one line for people
	Args         []string // of the service
	NoQueue      bool     // each click is decided in its request
	TwoDatabases bool     // the stock is in another one
	InScript     bool     // admission is in the queue's Redis, and its script queues the order
}

// Ways lists them, the simplest first.
func Ways() []Way {
	return []Way{
		{Name: "sync", What: "one transaction in each request, under a lock of its buyer: the tutorials' first version", Args: []string{"--mode", "sync"}, NoQueue: true},
		{Name: "queue", What: "the gate takes a unit, the request queues the order, a consumer writes it", Args: []string{"--enqueue", "publish"}},
		{Name: "script", What: "likewise, and one script takes the unit and queues the order: for queues in Redis", Args: []string{"--enqueue", "script"}, InScript: true},
		{Name: "queue-first", What: "buyers queue up, and the consumer decides about the stock", Args: []string{"--mode", "queue-first", "--enqueue", "publish"}},
		{Name: "two-databases", What: "like queue, with orders and stock in two databases: outbox and inbox", Args: []string{"--enqueue", "publish"}, TwoDatabases: true},
	}
}

// SelectWays returns the ways of a comma-separated list; "all" and "" are every way.
func SelectWays(list string) ([]Way, error) {
	all := Ways()
	if list == "" || list == "all" {
		return all, nil
	}
	var chosen []Way
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(all, func(w Way) bool { return w.Name == name })
		if at < 0 {
			names := make([]string, len(all))
			for i, w := range all {
				names[i] = w.Name
			}
			return nil, fmt.Errorf("unknown way of selling %q: there are %s", name, strings.Join(names, ", "))
		}
		if !slices.ContainsFunc(chosen, func(w Way) bool { return w.Name == name }) {
			chosen = append(chosen, all[at])
		}
	}
	return chosen, nil
}

// errNoScript is why a way means nothing to a setting.
var errNoScript = errors.New("no script of admission can put an order into this queue")
