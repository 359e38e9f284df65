package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"queuelab/app/store"
	"queuelab/queue"
)

// missingPromise says in a few words how a queue can lose an accepted order;
// empty when it cannot.
func missingPromise(c queue.Capabilities) string {
	switch {
	case !c.Lossy():
		return ""
	case c.Guarantee != queue.AtLeastOnce && !c.Stored:
		return "it delivers at most once, and keeps nothing for a consumer that is away"
	case c.Guarantee != queue.AtLeastOnce:
		return "it delivers at most once, so what a consumer holds when it dies is gone"
	case !c.Shared:
		return "it lives in this process, and what it holds dies with it"
	case !c.Durable:
		return "what it accepted does not survive a crash of its broker"
	default:
		return "it accepts orders that nobody has stored yet (confirmed by: " + c.Confirm.String() + ")"
	}
}

// announce says where the service is and what it stands on.
func (s *service) announce(w io.Writer) {
	fmt.Fprintf(w, "seckill %s listening on http://%s\n", version(), s.listener.Addr())
	name, gate := s.queueURL, here
	if s.f.Redis != "" {
		gate = store.Redact(s.f.Redis)
	}
	database, missing := store.Redact(s.f.DB), missingPromise(s.queue.Capabilities())
	if s.f.StockDB != "" {
		database += ", stock " + store.Redact(s.f.StockDB)
	}
	if s.f.Mode == modeSync {
		fmt.Fprintf(w, "no queue: each click is decided in its request · database %s · buyers' locks %s\n", database, gate)
		missing = ""
	} else {
		fmt.Fprintf(w, "queue %s · database %s · admission %s\n", store.Redact(name), database, gate)
	}
	if missing != "" {
		fmt.Fprintf(w, "careful: queue %s can lose orders: %s\n", store.Redact(name), missing)
	}
	if s.f.Redis == "" && s.queue.Capabilities().Shared {
		fmt.Fprintln(w, "careful: admission in this process is not shared with other instances, and forgets unanswered publishes when it dies: use --redis")
	}
	if s.f.Role != roleWorker {
		fmt.Fprintf(w, "operator's console: http://%s/operator\n", s.listener.Addr())
	}
	if s.opsListener != nil {
		fmt.Fprintf(w, "metrics and probes: http://%s\n", s.opsListener.Addr())
	}
	if s.f.Redis != "" && s.f.TokenKey == "" {
		fmt.Fprintln(w, "careful: tokens end with this process, and other instances do not know them: use --token-key")
	}
	if s.f.Login == "open" {
		fmt.Fprintln(w, "careful: any name is let in (--login=open)")
	}
	if s.f.TrustUserHeader {
		fmt.Fprintln(w, "careful: X-User-ID is believed (--trust-user-header)")
	}
}

// tellToken tells a made-up operator token to the person who reads w; where
// programs collect what is written there, it is in a file that only its owner reads.
func (s *service) tellToken(w io.Writer) error {
	if s.f.OperatorToken != "" || s.f.Role == roleWorker {
		return nil // known, or of no use: a worker has nothing for operators
	}
	if s.f.forPeople(w) {
		_, err := fmt.Fprintf(w, "operator token: %s\n", s.operatorToken)
		return err
	}
	f, err := os.CreateTemp("", "seckill-operator-token-")
	if err == nil {
		_, err = fmt.Fprintln(f, s.operatorToken)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("the operator token that was made up can be written nowhere: give one with --operator-token: %w", err)
	}
	s.log.Info("an operator token was made up", "file", f.Name())
	return nil
}
