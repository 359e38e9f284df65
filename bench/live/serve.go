package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// ErrRemote means that an address can be reached from other machines, and nobody
// said that it may.
var ErrRemote = errors.New("this address can be reached from other machines, and whoever opens the page can kill the processes of the lab: give --allow-remote if that is meant")

// Serve serves the page at an address until ctx ends, and then ends the show and
// all that belongs to it. opened is told the address to open, with the token of
// this start, once it answers.
func (s *Server) Serve(ctx context.Context, listen string, remote bool, opened func(url string)) (err error) {
	defer func() { err = errors.Join(err, s.Close()) }()
	if !remote {
		if err := loopback(ctx, listen); err != nil {
			return err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return taken(ctx, listen)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", listen, err)
	}
	a := newAccess(l.Addr(), remote)
	h := &http.Server{Handler: a.protect(s.routes()), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	opened(fmt.Sprintf("http://%s/?token=%s", reachable(l.Addr()), a.token))
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", listen, err)
	case <-ctx.Done():
	}
	err = s.Close() // ends the streams, too
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if h.Shutdown(short) != nil {
		h.Close()
	}
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}

// loopback refuses an address that others can reach.
func loopback(ctx context.Context, listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("address %q: %w; give one like 127.0.0.1:7070", listen, err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("address %q: the port %q is no number from 0 to 65535; give an address like 127.0.0.1:7070", listen, port)
	}
	if host == "" {
		return fmt.Errorf("listen on %q: %w", listen, ErrRemote)
	}
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		return fmt.Errorf("address %q: %w", listen, err)
	}
	for _, ip := range ips {
		if !ip.IsLoopback() {
			return fmt.Errorf("listen on %q: %w", listen, ErrRemote)
		}
	}
	return nil
}

// taken says who has the port.
func taken(ctx context.Context, listen string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listen+"/", nil)
	if err == nil {
		var resp *http.Response
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if resp, err = client.Do(req); err == nil {
			resp.Body.Close()
			if resp.Header.Get(Header) == "live" {
				return fmt.Errorf("a live lab serves on %s already: open the address that it printed, end it with Ctrl-C, or give this one another port with --listen 127.0.0.1:0", listen)
			}
		}
	}
	return fmt.Errorf("another program has the port of %s: choose another port with --listen; 127.0.0.1:0 takes any that is free", listen)
}

// reachable is an address that a browser on this machine can open.
func reachable(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	return fmt.Sprintf("127.0.0.1:%d", t.Port)
}
