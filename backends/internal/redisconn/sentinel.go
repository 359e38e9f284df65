package redisconn

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"queuelab/backends/internal/params"
)

// replication reads the parameters of servers that replicate.
func (s *Server) replication(p *params.Params) error {
	s.Wait = p.Int("wait", 0, 0, 10)
	s.Sentinels = p.String("sentinel", "")
	s.Master = p.String("master", "")
	switch {
	case s.Sentinels == "" && s.Master == "":
		return nil
	case s.Sentinels == "":
		return errors.New("master=NAME is a name among Sentinels: add sentinel=host:port,host:port")
	case s.Master == "":
		return errors.New("sentinel= needs master=NAME, the name under which the Sentinels watch the server")
	}
	for _, addr := range strings.Split(s.Sentinels, ",") {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			return fmt.Errorf("sentinel=%q: want host:port, several by commas", s.Sentinels)
		}
	}
	return nil
}

// failover is Client for the server that the Sentinels call the master: each new
// connection goes to whichever that is. The options are those of Client.
func (s Server) failover(pool, retries int) *redis.Client {
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:            s.Master,
		SentinelAddrs:         strings.Split(s.Sentinels, ","),
		Username:              s.User,
		Password:              s.Password,
		DB:                    s.DB,
		Protocol:              2,
		MaxRetries:            retries,
		DialerRetries:         1,
		DialTimeout:           s.Timeout,
		ReadTimeout:           s.Timeout,
		WriteTimeout:          s.Timeout,
		PoolTimeout:           s.Timeout,
		ContextTimeoutEnabled: true,
		PoolSize:              pool,
		PipelinePoolSize:      -1,
		DisableIdentity:       true,
	})
}
