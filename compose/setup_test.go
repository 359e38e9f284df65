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
  printf '#!/bin/sh\necho mvn "$@" >> ` + note + `\nfor a; do case $a in -DoutputDirectory=*) d=${a#*=}; mkdir -p $d; case $d in *perf-test*) touch $d/perf-test-2.22.1.jar;; *) touch $d/kafka_2.13-4.3.1.jar;; esac;; esac; done\n' > ` + bin + `/mvn; chmod +x ` + bin + `/mvn;;
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

func TestSetUpFetchesPerfTestOnlyWhenAsked(t *testing.T) {
	env, calls := bareMachine(t)
	libs := func(dir string) bool {
		found, err := filepath.Glob(filepath.Join(env[1][len("HOME="):], ".cache/queuelab", dir, "libs/*.jar"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found) > 0
	}
	// RabbitMQ and PostgreSQL may be missing, which the other tests look at.
	if out, _ := setUp(t, env); !libs("kafka-4.3.1") || libs("perf-test-2.22.1") {
		t.Fatalf("got Kafka's jars %v and PerfTest's %v, want the first alone; it said\n%s", libs("kafka-4.3.1"), libs("perf-test-2.22.1"), out)
	}
	out, _ := setUp(t, env, "--check")
	if !strings.Contains(out, "PerfTest's jars are not here") || !strings.Contains(out, "make peers") {
		t.Errorf("--check said\n%swant that PerfTest is not here, and the remedy", out)
	}
	if out, _ := setUp(t, env, "--peers"); !libs("perf-test-2.22.1") {
		t.Errorf("got no jars of PerfTest, having said\n%s", out)
	}
	once := strings.Count(calls(), "dependency:copy-dependencies")
	if out, _ := setUp(t, env, "--tests"); strings.Count(calls(), "dependency:copy-dependencies") != once {
		t.Errorf("fetched again:\n%s\nit said\n%s", calls(), out)
	}
	if out, _ := setUp(t, env, "--check"); strings.Contains(out, "PerfTest") {
		t.Errorf("--check said\n%swant nothing of PerfTest, which is here", out)
	}
}

func TestJarsThatSomebodySaysWhereTheyAreAreNotFetched(t *testing.T) {
	env, calls := bareMachine(t)
	setUp(t, env) // brings the stand-in for Maven
	before := calls()
	env = append(env, "QUEUELAB_PERFTEST_LIBS="+t.TempDir())
	out, err := setUp(t, env, "--peers")
	if fetched := strings.Count(calls(), "copy-dependencies") - strings.Count(before, "copy-dependencies"); fetched != 0 || err == nil || !strings.Contains(out, "QUEUELAB_PERFTEST_LIBS is set") {
		t.Errorf("got %d fetched and %v, want none and an error that names what is missing; it said\n%s", fetched, err, out)
	}
}
