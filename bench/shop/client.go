// Package shop speaks the service's API, as a script of a user would.
package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Client speaks to one service, for buyers and for its operator. It is safe for
// concurrent use.
type Client struct {
	// Title is that of its vouchers.
	Title string

	base, operator string
	http           *http.Client
}

// New returns a client of the service at base, such as http://127.0.0.1:8080,
// that keeps so many connections. operator is the operator's token.
func New(base, operator string, connections int) *Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost, t.MaxConnsPerHost, t.Proxy = connections, connections, nil
	return &Client{Title: "queuelab sale", base: base, operator: operator, http: &http.Client{Transport: t, Timeout: 40 * time.Second}}
}

// Answer is what the service said.
type Answer struct {
	OrderID string `json:"orderId"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	ID      string `json:"id"`
	Error   struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Do sends one request, as the operator where there is no user. An error means
// that there was no answer: what the service did is unknown.
func (c *Client) Do(ctx context.Context, method, path, user string, body any) (int, Answer, error) {
	var a Answer
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, a, err
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, payload)
	if err != nil {
		return 0, a, err
	}
	req.Header.Set("Content-Type", "application/json")
	if user != "" {
		req.Header.Set("X-User-ID", user)
	} else {
		req.Header.Set("Authorization", "Bearer "+c.operator)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, a, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, a, err
	}
	if err := json.Unmarshal(raw, &a); err != nil && resp.StatusCode < 300 {
		return resp.StatusCode, a, fmt.Errorf("%s %s: status %d with %q: %w", method, path, resp.StatusCode, raw, err)
	}
	return resp.StatusCode, a, nil
}

// Ready reports whether the service says that it is.
func (c *Client) Ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body) // read to the end, the connection serves again
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Voucher creates one whose sale began a minute ago and goes on for an hour.
func (c *Client) Voucher(ctx context.Context, stock int) (id string, err error) {
	now := time.Now()
	return c.VoucherFor(ctx, stock, now.Add(-time.Minute), now.Add(time.Hour))
}

// VoucherFor creates one with a sale window.
func (c *Client) VoucherFor(ctx context.Context, stock int, begin, end time.Time) (id string, err error) {
	status, a, err := c.Do(ctx, http.MethodPost, "/api/vouchers", "", map[string]any{
		"title": c.Title, "stock": stock, "payValue": 4700, "actualValue": 5000,
		"beginTime": begin.UTC().Format(time.RFC3339Nano), "endTime": end.UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return "", fmt.Errorf("create a voucher: %w", err)
	}
	if status != http.StatusCreated {
		return "", fmt.Errorf("create a voucher: status %d, %s: %s", status, a.Error.Code, a.Error.Message)
	}
	return a.ID, nil
}

// Buy is one click.
func (c *Client) Buy(ctx context.Context, voucher string, user int) (int, Answer, error) {
	return c.Do(ctx, http.MethodPost, "/api/vouchers/"+voucher+"/orders", strconv.Itoa(user), nil)
}

// Result waits for an order's final answer, at most until the deadline. status is
// "missing" for an order that the service does not know.
func (c *Client) Result(ctx context.Context, order string, user int, deadline time.Time) (status string) {
	status = "queued"
	for {
		wait := min(time.Until(deadline), 10*time.Second).Round(time.Millisecond)
		if wait <= 0 || ctx.Err() != nil {
			return status
		}
		code, a, err := c.Do(ctx, http.MethodGet, "/api/orders/"+order+"?wait="+wait.String(), strconv.Itoa(user), nil)
		switch {
		case err == nil && code == http.StatusNotFound:
			return "missing"
		case err == nil && code == http.StatusOK && a.Status != "queued":
			return a.Status
		case err == nil && code == http.StatusOK:
			status = a.Status
		}
		// The service may be restarting, or may answer early: not a busy loop.
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close lets go of the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }
