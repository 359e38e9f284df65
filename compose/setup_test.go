package compose_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// bareMachine makes a PATH with what every Linux has, and an apt-get, sudo and
// mvn that note what they are asked and install stand-ins.
func bareMachine(t *testing.T) (env []string, calls func() string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("set-up by packages is for Linux")
	}
	bin, home := t.TempDir(), t.TempDir()
	for _, tool := range []string{"bash", "uname", "paste", "cat", "mkdir", "rm", "mv", "touch", "chmod", "dirname", "flock"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	note := filepath.Join(home, "calls")
	for name, script := range map[string]string{
		"id":        `echo 1000`,
		"apt-cache": `case "$2" in postgresql-15|openjdk-17-jre-headless) exit 1;; esac`, // a release that has other versions
		"apt-get":   `echo apt-get "$@" >> ` + note,
		"sudo": `if [ "$1" = tee ]; then cat >/dev/null; fi
echo sudo "$@" >> ` + note + `
case "$*" in *"apt-get install"*) for p in redis-server erl java; do touch ` + bin + `/$p; chmod +x ` + bin + `/$p; done
  printf '#!/bin/sh\necho mvn "$@" >> ` + note + `\nfor a; do case $a in -DoutputDirectory=*) mkdir -p ${a#*=}; touch ${a#*=}/kafka_2.13-4.3.1.jar;; esac; done\n' > ` + bin + `/mvn; chmod +x ` + bin + `/mvn;;
esac`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PATH=" + bin, "HOME=" + home}, func() string { b, _ := os.ReadFile(note); return string(b) }
}

func setUp(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("./setup.sh", args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestSetUpInstallsWhatIsMissingAndThenNothing(t *testing.T) {
	env, calls := bareMachine(t)
	out, err := setUp(t, env)
	got := calls()
	for _, want := range []string{"apt-get update", "redis-server", "rabbitmq-server", "default-jre-headless", "maven", "dependency:copy-dependencies"} {
		if !strings.Contains(got, want) {
			t.Errorf("got calls\n%swant %q among them; it said\n%s", got, want, out)
		}
	}
	for _, never := range []string{"systemctl", "service ", "invoke-rc.d"} {
		if strings.Contains(got, never) {
			t.Errorf("got calls\n%swant no service touched by %q", got, never)
		}
	}
	// RabbitMQ and PostgreSQL have places of their own, which are the real
	// machine's: without them set-up must say so and fail.
	if missing := strings.Contains(out, "still missing"); missing != (err != nil) {
		t.Errorf("got error %v, having said\n%s", err, out)
	}
	if err != nil {
		return
	}
	if out, err := setUp(t, env); err != nil || calls() != got {
		t.Errorf("got %v and new calls from a second set-up, want nothing done; it said\n%s", err, out)
	}
}

func TestSetUpCheckTellsAndChangesNothing(t *testing.T) {
	env, calls := bareMachine(t)
	out, err := setUp(t, env, "--check")
	if err == nil || !strings.Contains(out, "missing: redis rabbitmq") || !strings.Contains(out, "make setup") {
		t.Errorf("got %v, having said\n%swant exit status 1, what is missing and the remedy", err, out)
	}
	if got := calls(); got != "" {
		t.Errorf("got calls\n%swant none", got)
	}
	if out, err := setUp(t, env, "--chekc"); err == nil || !strings.Contains(out, "usage") {
		t.Errorf("got %v, having said\n%swant the usage", err, out)
	}
}
