package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"queuelab/compose"
)

var errNoEngine = errors.New("no container engine")

// container is a broker that Docker Compose runs, in a project of its own.
type container struct {
	kind    kind
	docker  string
	project string
	dir     string // holds the compose file and what it mounts
	env     []string
	at      int
	behind  proxied
	ends    chan string
	guard   *exec.Cmd
	pipe    io.Closer // its end makes the guard clear up
}

// newContainer creates a container and starts the guard that will clear up.
func newContainer(ctx context.Context, k kind, setting string) (_ *container, err error) {
	if setting == "" || setting == "default" {
		setting = k.setting
	}
	docker, err := engine(ctx)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(3) // for clients; and for those of a proxy, where the broker cares
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "queuelab-"+k.name+"-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := copyFiles(dir, k.name+".yml", k.name); err != nil {
		return nil, err
	}
	upper := strings.ToUpper(k.name)
	c := &container{
		kind: k, docker: docker, dir: dir, at: ports[0], ends: make(chan string, 8),
		behind:  proxied{target: ports[1], listen: ports[2]},
		project: fmt.Sprintf("queuelab-%s-%08x", k.name, rand.Uint32()),
		env: append(os.Environ(),
			"QUEUELAB_"+upper+"_PORT="+strconv.Itoa(ports[0]),
			"QUEUELAB_"+upper+"_PROXIED_PORT="+strconv.Itoa(ports[1]),
			"QUEUELAB_"+upper+"_PROXY_PORT="+strconv.Itoa(ports[2]),
			"QUEUELAB_"+upper+"_SETTING="+setting),
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c.guard = exec.Command(self, append([]string{guardWord, dir}, c.command("down", "--volumes", "--timeout", "0")...)...)
	c.guard.Env = append(slices.Clone(c.env), startingVar+"=1")
	c.guard.Stderr, c.guard.SysProcAttr = os.Stderr, detached()
	if c.pipe, err = c.guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.guard.Start(); err != nil {
		return nil, fmt.Errorf("start the guard of a container: %w", err)
	}
	// Apart from the start, since it may have to fetch the image, which takes
	// as long as the network takes.
	if _, err := c.run(ctx, "create"); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// engine finds a docker command that has Compose and reaches an engine.
func engine(ctx context.Context) (string, error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return "", fmt.Errorf("%w: docker is not installed", errNoEngine)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if exec.CommandContext(ctx, docker, "compose", "version").Run() != nil {
		return "", fmt.Errorf("%w: docker is installed without Compose", errNoEngine)
	}
	if exec.CommandContext(ctx, docker, "info").Run() != nil {
		return "", fmt.Errorf("%w: docker reaches no running engine", errNoEngine)
	}
	return docker, nil
}

// copyFiles writes files and folders of package compose below dir.
func copyFiles(dir string, names ...string) error {
	for _, root := range names {
		err := fs.WalkDir(compose.Files, root, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			to := filepath.Join(dir, filepath.FromSlash(name))
			if d.IsDir() {
				return os.MkdirAll(to, 0o755)
			}
			content, err := compose.Files.ReadFile(name)
			if err != nil {
				return err
			}
			return os.WriteFile(to, content, 0o644)
		})
		if err != nil {
			return err
		}
	}
	// The container's user is another one, and must be able to read what is
	// mounted.
	return os.Chmod(dir, 0o755)
}

func (c *container) command(args ...string) []string {
	return append([]string{c.docker, "compose", "-p", c.project, "-f", filepath.Join(c.dir, c.kind.name+".yml")}, args...)
}

func (c *container) run(ctx context.Context, args ...string) (string, error) {
	argv := c.command(args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = c.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("docker compose %s: %w:\n%s", args[0], err, lastLines(errs.String(), 8))
	}
	return out.String(), nil
}

func (c *container) port() int           { return c.at }
func (c *container) identity() string    { return "" } // its port is Docker's to give
func (c *container) died() <-chan string { return c.ends }

// launch starts the container that newContainer created, or that was killed.
func (c *container) launch(ctx context.Context) error {
	for len(c.ends) > 0 {
		<-c.ends
	}
	if _, err := c.run(ctx, "start"); err != nil {
		return err
	}
	go func() { // for as long as somebody waits for it to serve
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			if running, err := c.running(ctx); err == nil && !running {
				c.ends <- "its container ended"
				return
			}
		}
	}()
	return nil
}

func (c *container) running(ctx context.Context) (bool, error) {
	out, err := c.run(ctx, "ps", "--quiet", "--status", "running")
	return strings.TrimSpace(out) != "", err
}

func (c *container) kill(ctx context.Context) error {
	if running, err := c.running(ctx); err != nil || !running {
		return err
	}
	if _, err := c.run(ctx, "kill", "--signal", "KILL"); err != nil {
		return err
	}
	for {
		running, err := c.running(ctx)
		if err != nil || !running {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// terminate lets the engine send SIGTERM, and SIGKILL later. How it ended shows
// in the exit status only, which Compose does not tell apart.
func (c *container) terminate(ctx context.Context) error {
	_, err := c.run(ctx, "stop", "--timeout", "30")
	return err
}

func (c *container) pause(ctx context.Context) error {
	_, err := c.run(ctx, "pause")
	return err
}

func (c *container) resume(ctx context.Context) error {
	_, err := c.run(ctx, "unpause")
	return err
}

func (c *container) log(ctx context.Context) string {
	out, err := c.run(ctx, "logs", "--no-color", "--no-log-prefix")
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	return out
}

// usage is not known: Docker's engine may be on another machine.
func (c *container) usage() (Usage, error) { return Usage{}, nil }

func (c *container) settings(context.Context) map[string]string { return nil }

func (c *container) stop() error {
	c.pipe.Close()
	if err := c.guard.Wait(); err != nil {
		return fmt.Errorf("take down the containers of project %s: %w", c.project, err)
	}
	return nil
}

// guard waits for the end of the pipe on its standard input, then runs the
// command that takes the containers down and removes the directory, which is its
// first argument.
func guard(args []string) int {
	dir, down := args[0], args[1:]
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	_, _ = io.Copy(io.Discard, os.Stdin) // ends, in whatever way, when nobody holds the other end
	code := 0
	if out, err := exec.Command(down[0], down[1:]...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "queuelab: %s: %v:\n%s\n", strings.Join(down, " "), err, lastLines(string(out), 8))
		code = 1
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "queuelab: the broker's directory stays:", err)
		code = 1
	}
	return code
}
