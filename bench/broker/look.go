package broker

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/nats-io/nats-server/v2/server"
)

// Program is something that a broker needs on this machine to run natively.
type Program struct {
	Name string
	Path string
	// Version is set where it is known without asking the program.
	Version string
	Err     error // nil: it is here. Else ErrUnavailable, with what is missing and how to get it
}

// Programs lists what a native start of that kind would use, found by the same
// rules as a start itself.
func Programs(kindName string) ([]Program, error) {
	k, err := lookup(kindName)
	if err != nil {
		return nil, err
	}
	program := func(name string, look func() (string, error)) Program {
		path, err := look()
		return Program{Name: name, Path: path, Err: err}
	}
	switch k.name {
	case "redis":
		return []Program{program("redis-server", func() (string, error) { return lookProgram("redis-server") })}, nil
	case "rabbitmq":
		return []Program{
			program("rabbitmq-server", func() (string, error) { server, _, err := rabbitPrograms(); return server, err }),
			program("Erlang", func() (string, error) {
				path, err := exec.LookPath("erl")
				if err != nil {
					return "", unavailable("Erlang's erl is not on the PATH", makeSetup)
				}
				return path, nil
			}),
		}, nil
	case "kafka":
		return []Program{program("Java", lookJava), program("Kafka jars", func() (string, error) {
			jars, err := kafkaJars()
			if err != nil {
				return "", err
			}
			return filepath.Dir(jars[0]), nil
		})}, nil
	case "nats":
		p := program("NATS server, in this program", selfPath)
		p.Version = server.VERSION
		return []Program{p}, nil
	case "postgres":
		return []Program{program("PostgreSQL", func() (string, error) {
			if _, err := lookPostgres("initdb"); err != nil {
				return "", err
			}
			return lookPostgres("postgres")
		})}, nil
	}
	return nil, fmt.Errorf("nobody has said what %s needs", k.name)
}

// Engine is the path of docker, if Compose reaches a running engine through it.
// It may take seconds: it asks the engine.
func Engine(ctx context.Context) (string, error) { return engine(ctx) }

// Available says how Start would run that kind here, "native" or "docker", or
// why it could not. It starts nothing.
func Available(ctx context.Context, kindName string) (string, error) {
	k, err := lookup(kindName)
	if err != nil {
		return "", err
	}
	err = unavailable("brokers run natively on Linux only", "start Docker, and they run in containers")
	if runtime.GOOS == "linux" {
		if err = k.available(); err == nil {
			return "native", nil
		}
	}
	if k.assemble != nil {
		return "", err
	}
	if _, engineErr := engine(ctx); engineErr != nil {
		return "", fmt.Errorf("%w (and %w)", err, engineErr)
	}
	return "docker", nil
}
