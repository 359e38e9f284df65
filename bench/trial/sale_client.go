package trial

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

// saleClient speaks the service's API, as a script of a user would.
type saleClient struct {
	base, operator string
	http           *http.Client
}

func newSaleClient(base, operator string, connections int) *saleClient {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost, t.MaxConnsPerHost, t.Proxy = connections, connections, nil
	return &saleClient{base: base, operator: operator, http: &http.Client{Transport: t, Timeout: 40 * time.Second}}
}

// answer is what the service said to a buyer.
type answer struct {
	OrderID string `json:"orderId"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	ID      string `json:"id"`
	Error   struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// do sends one request. An error means that there was no answer: what the
// service did is unknown.
func (c *saleClient) do(ctx context.Context, method, path, user string, body any) (int, answer, error) {
	var a answer
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

func (c *saleClient) ready(ctx context.Context) bool {
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

func (c *saleClient) createVoucher(ctx context.Context, stock int) (string, error) {
	now := time.Now()
	status, a, err := c.do(ctx, http.MethodPost, "/api/vouchers", "", map[string]any{
		"title": "queuelab sale", "stock": stock, "payValue": 4700, "actualValue": 5000,
		"beginTime": now.Add(-time.Minute).UTC().Format(time.RFC3339), "endTime": now.Add(time.Hour).UTC().Format(time.RFC3339),
	})
	if err != nil {
		return "", fmt.Errorf("create a voucher: %w", err)
	}
	if status != http.StatusCreated {
		return "", fmt.Errorf("create a voucher: status %d, %s: %s", status, a.Error.Code, a.Error.Message)
	}
	return a.ID, nil
}

// buy is one click.
func (c *saleClient) buy(ctx context.Context, voucher string, user int) (int, answer, error) {
	return c.do(ctx, http.MethodPost, "/api/vouchers/"+voucher+"/orders", strconv.Itoa(user), nil)
}

// result waits for an order's final answer, at most until the deadline.
// status is "missing" for an order that the service does not know.
func (c *saleClient) result(ctx context.Context, order string, user int, deadline time.Time) (status string) {
	status = "queued"
	for {
		wait := min(time.Until(deadline), 10*time.Second).Round(time.Millisecond)
		if wait <= 0 || ctx.Err() != nil {
			return status
		}
		code, a, err := c.do(ctx, http.MethodGet, "/api/orders/"+order+"?wait="+wait.String(), strconv.Itoa(user), nil)
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
