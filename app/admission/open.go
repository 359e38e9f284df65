package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	clusterScheme = "redis+cluster"
	clientTimeout = time.Second
	// clusterRedirects bounds how often a command follows its slot.
	clusterRedirects = 3
)

// open makes a client, and says where it goes to without the password.
func open(rawURL string) (client redis.UniversalClient, addr string, err error) {
	if strings.HasPrefix(rawURL, clusterScheme+"://") {
		return openCluster(rawURL)
	}
	if !strings.HasPrefix(rawURL, "redis://") && !strings.HasPrefix(rawURL, "rediss://") && !strings.HasPrefix(rawURL, "unix://") {
		return nil, "", errors.New("the Redis URL must look like redis://127.0.0.1:6379/0, or redis+cluster://127.0.0.1:7001,127.0.0.1:7002 for a cluster")
	}
	o, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, "", urlError(err)
	}
	// A retry of the client would be a second click that nobody sees; ours keep
	// the order id.
	o.MaxRetries, o.DialerRetries = -1, 1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = clientTimeout, clientTimeout, clientTimeout
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.MaintNotificationsConfig = quiet()
	return redis.NewClient(o), o.Addr, nil
}

// urlError: the error of url.Parse quotes the whole URL, password and all.
func urlError(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return fmt.Errorf("the Redis URL: %w", err)
}

func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func openCluster(rawURL string) (redis.UniversalClient, string, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, "", urlError(err)
	}
	if path := strings.Trim(u.Path, "/"); path != "" && path != "0" || u.RawQuery != "" || u.Fragment != "" {
		return nil, "", errors.New("the Redis URL: a cluster has one database and no parameters: want redis+cluster://[user:password@]host:port,host:port")
	}
	addrs := strings.Split(u.Host, ",")
	for _, a := range addrs {
		if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" {
			return nil, "", fmt.Errorf("the Redis URL: node %q: want host:port, several by commas", a)
		}
	}
	password, _ := u.User.Password()
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, Username: u.User.Username(), Password: password,
		// A redirected command was not executed, so following it is no retry. The same
		// bound would also send again what had no answer: see once.
		MaxRedirects: clusterRedirects, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: clientTimeout, ReadTimeout: clientTimeout, WriteTimeout: clientTimeout,
		ContextTimeoutEnabled: true, DisableIdentity: true, MaintNotificationsConfig: quiet(),
		// No node is asked what each command is: all that is sent here names its key.
		DisableRoutingPolicies: true,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{Timeout: clientTimeout, KeepAlive: 5 * time.Minute}).DialContext(ctx, network, addr)
			if tcp, ok := c.(*net.TCPConn); ok && err == nil {
				return once{tcp}, nil
			}
			return c, err
		},
	}), u.Host, nil
}

// once is a connection whose errors the cluster's client does not know to be those
// of a connection, so that a command without an answer is not sent a second time
// behind our back.
type once struct{ *net.TCPConn }

func (c once) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	return n, hide(err)
}

func (c once) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	return n, hide(err)
}

func hide(err error) error {
	if err == nil {
		return nil
	}
	return noAnswer{err}
}

// noAnswer hides what an error is, and not what it says.
type noAnswer struct{ cause error }

func (e noAnswer) Error() string { return "no answer: " + e.cause.Error() }

// node is the Redis where a key is.
func (g *Redis) node(ctx context.Context, key string) (*redis.Client, error) {
	switch c := g.client.(type) {
	case *redis.Client:
		return c, nil
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, key)
	}
	return nil, fmt.Errorf("a client of type %T has no nodes", g.client)
}

// nodes calls f, maybe at the same time, for each Redis that has keys.
func (g *Redis) nodes(ctx context.Context, f func(ctx context.Context, node *redis.Client) error) error {
	switch c := g.client.(type) {
	case *redis.Client:
		return f(ctx, c)
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, f)
	}
	return fmt.Errorf("a client of type %T has no nodes", g.client)
}
