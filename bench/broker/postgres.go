package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func postgresKind() kind {
	return kind{
		name: "postgres", setting: "default", ports: 1, patience: time.Minute,
		url: func(port int) string { return fmt.Sprintf("postgres://lab@127.0.0.1:%d/lab?sslmode=disable", port) },
		available: func() error {
			if _, err := lookPostgres("initdb"); err != nil {
				return err
			}
			_, err := postgresAccount()
			return err
		},
		plan:  planPostgres,
		ready: postgresReady,
		found: postgresFound,
		version: func(ctx context.Context, url, _ string) (string, error) {
			m, err := postgresShow(ctx, url, "server_version")
			v, _, _ := strings.Cut(m["server_version"], " ") // the rest names the packager
			return v, err
		},
		settings: func(ctx context.Context, url string) (map[string]string, error) {
			return postgresShow(ctx, url, "server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "commit_delay",
				"track_commit_timestamp", "max_connections", "shared_buffers")
		},
	}
}

func lookPostgres(name string) (string, error) {
	return lookProgram(name, "/usr/lib/postgresql/15/bin/"+name, "/usr/lib/postgresql/*/bin/"+name, "/usr/pgsql-*/bin/"+name)
}

// postgresAccount is the user to run as: PostgreSQL refuses root.
func postgresAccount() (*account, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
			gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
			return &account{UID: uint32(uid), GID: uint32(gid)}, errors.Join(err1, err2)
		}
	}
	return nil, unavailable("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody", "run this as another user")
}

func planPostgres(l layout) (plan, error) {
	initdb, err := lookPostgres("initdb")
	if err != nil {
		return plan{}, err
	}
	server, err := lookPostgres("postgres")
	if err != nil {
		return plan{}, err
	}
	owner, err := postgresAccount()
	if err != nil {
		return plan{}, err
	}
	data := filepath.Join(l.data, "data")
	env := []string{"HOME=" + l.dir, "LC_ALL=C"}
	return plan{
		identity: data,
		owner:    owner,
		ends:     syscall.SIGINT, // on SIGTERM it waits for its clients to leave, for ever
		prepare: []command{{User: owner, Env: env, Argv: []string{
			initdb, "-D", data, "-A", "trust", "-U", "lab", "--no-locale", "-E", "UTF8", "-N"}}},
		serve: []command{{User: owner, Env: env, Argv: []string{
			server, "-D", data, "-c", "config_file=" + l.conf, "-p", strconv.Itoa(l.ports[0]),
			"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + l.dir}}},
	}, nil
}

func withPostgres(ctx context.Context, url, database string, do func(*pgx.Conn) error) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	if database != "" {
		cfg.Database = database
	}
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	return do(c)
}

// postgresReady asks the database that every cluster has where the broker is
// ours: the lab's own is made only then.
func postgresReady(ctx context.Context, url, identity string) error {
	database := ""
	if identity != "" {
		database = "postgres"
	}
	return withPostgres(ctx, url, database, func(c *pgx.Conn) error {
		var data string
		if identity == "" {
			return c.QueryRow(ctx, "SELECT 'ready'").Scan(&data)
		}
		if err := c.QueryRow(ctx, "SHOW data_directory").Scan(&data); err != nil {
			return err
		}
		if data != identity {
			return errStranger
		}
		return nil
	})
}

func postgresFound(ctx context.Context, url string) error {
	return withPostgres(ctx, url, "postgres", func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, "CREATE DATABASE lab")
		const duplicateDatabase = "42P04"
		if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == duplicateDatabase {
			return nil
		}
		return err
	})
}

func postgresShow(ctx context.Context, url string, names ...string) (got map[string]string, err error) {
	err = withPostgres(ctx, url, "", func(c *pgx.Conn) error {
		got = map[string]string{}
		for _, name := range names {
			var v string
			if err := c.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&v); err != nil {
				return err
			}
			got[name] = v
		}
		return nil
	})
	return got, err
}
