package learn

import (
	"errors"
	"net/http"
	"os/exec"
	"time"

	"queuelab/bench/shop"
)

// Beside starts another instance of the service on the same queue, Redis and
// database.
func (v *Service) Beside(args ...string) *Service {
	return v.s.instance(v.argv[0], v.env, v.token, v.DB, args)
}

// Unseen is a client of buyers who are not in the transcript, since there are too
// many of them.
func (v *Service) Unseen() *shop.Client {
	c := shop.New("http://"+v.argv[2], v.token, 64)
	v.s.After(func() error { c.Close(); return nil })
	return c
}

// End asks it to stop with SIGTERM, as a deployment does, waits until it has, and
// reports whether it ended in order.
func (v *Service) End() bool {
	state, err := v.process.Terminate(v.s.ctx)
	v.s.Must(err)
	return state == "exited"
}

// Offer creates a voucher on sale with fields of the API beside those that all
// have, such as payWithinSeconds.
func (v *Service) Offer(stock int, fields map[string]any) (voucher string) {
	now := time.Now()
	body := map[string]any{
		"title": v.Title, "stock": stock, "payValue": 4700, "actualValue": 5000,
		"beginTime": now.Add(-time.Minute).UTC().Format(time.RFC3339Nano), "endTime": now.Add(time.Hour).UTC().Format(time.RFC3339Nano),
	}
	for name, value := range fields {
		body[name] = value
	}
	return v.Tell(http.MethodPost, "/api/vouchers", "", body).ID
}

// Balanced has seckill verify compare gate, queue and database: whether they agree,
// and what it said. It is not in the transcript.
func (v *Service) Balanced(args ...string) (bool, string) {
	cmd := exec.CommandContext(v.s.ctx, v.argv[0], append([]string{"verify"}, args...)...)
	cmd.Env = v.env
	var out []byte
	var err error
	v.s.Quietly(func() { out, err = cmd.CombinedOutput() })
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		return false, string(out)
	}
	if err != nil {
		v.s.Fail("seckill verify: %v: %s", err, out)
	}
	return true, string(out)
}

// Tell is one request that must succeed; "" for user is the operator.
func (v *Service) Tell(method, path, user string, body any) shop.Answer {
	status, a, err := v.Do(v.s.ctx, method, path, user, body)
	v.s.Must(err)
	if status >= 300 {
		v.s.Fail("%s %s: status %d, %s: %s", method, path, status, a.Error.Code, a.Error.Message)
	}
	return a
}
