package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func write(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "seckill.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// effective is what --print-config prints, by flag.
func effective(t *testing.T, args ...string) map[string]string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append(args, "--print-config"), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, rest, _ := strings.Cut(line, ": ")
		lines[name] = strings.TrimSpace(rest)
	}
	return lines
}

func TestAFlagComesBeforeTheEnvironmentAndThatBeforeTheFile(t *testing.T) {
	file := write(t, "lanes: 7\nbatch: 70\nmax-attempts: 700\ntrusted-proxies: [10.0.0.0/8, 192.168.0.0/16]\nallow-lossy: true\nrescan: 9s\n")
	t.Setenv("SECKILL_LANES", "8")
	t.Setenv("SECKILL_BATCH", "80")
	t.Setenv("SECKILL_CONFIG", file)
	got := effective(t, "--lanes", "9")
	for name, want := range map[string]string{
		"lanes": "9  # flag", "batch": "80  # environment, SECKILL_BATCH", "max-attempts": "700  # file", "allow-lossy": "true  # file",
		"trusted-proxies": "[10.0.0.0/8, 192.168.0.0/16]  # file", "rescan": "9s  # file", "ids": "snowflake  # default",
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}

func TestWhatIsPrintedIsAConfigurationWithoutSecrets(t *testing.T) {
	const word = "hidden-from-everybody-who-looks-at-it"
	args := []string{"--operator-token", word, "--token-key", word, "--token-key-old", word, "--db", "postgres://u:" + word + "@h/x",
		"--redis", "redis://:" + word + "@h/0", "--queue", "amqp://u:" + word + "@h/?queue=q", "--trace", "http://u:" + word + "@h:4318"}
	var out bytes.Buffer
	if err := run(t.Context(), append(args, "--print-config"), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), word) || strings.Count(out.String(), leftOut) != 7 {
		t.Errorf("got %s, want seven secrets left out", out.String())
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, leftOut) && !strings.HasPrefix(line, "# ") {
			t.Errorf("got %q, want what is left out as a comment", line)
		}
	}
	got := effective(t, "--config", write(t, out.String()))
	for name, want := range map[string]string{"lanes": "4  # file", "operator-token": `""  # default`, "queue": `""  # default`} {
		if got[name] != want {
			t.Errorf("got %s %s, want %s", name, got[name], want)
		}
	}
}

// As a token, what stands for a secret would let in whoever has seen a printed
// configuration.
func TestWhatStandsForASecretIsNone(t *testing.T) {
	for _, args := range [][]string{
		{"--operator-token", leftOut}, {"--token-key-old", leftOut, "--token-key", strings.Repeat("k", 32)},
		{"--lab", "--redis", "redis://h/0", "--queue", "redis-streams", "--operator-token", leftOut}, // where it may be short
		{"--db", "postgres://u:" + leftOut + "@h/x"}, {"--db", "postgres://h/x?user=u&password=" + leftOut}, {"--redis", "redis://:" + leftOut + "@h/0"},
	} {
		if err := run(t.Context(), append(args, "--print-config"), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), args[len(args)-2]) {
			t.Errorf("%v: got %v, want it refused by the flag's name", args, err)
		}
	}
	file := write(t, "operator-token: "+leftOut+"\n")
	if err := run(t.Context(), []string{"--config", file}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "--operator-token") {
		t.Errorf("got %v, want the file's refused too", err)
	}
}

func TestAShortOperatorTokenIsForLabsOnly(t *testing.T) {
	short, long := strings.Repeat("t", 15), strings.Repeat("t", 16)
	for _, tc := range []struct {
		args []string
		ok   bool
	}{
		{[]string{"--operator-token", short}, false},
		{[]string{"--operator-token", long}, true},
		{[]string{"--operator-token", short, "--lab", "--redis", "redis://h/0", "--queue", "redis-streams"}, true},
		{[]string{"--operator-token", short, "--lab", "--redis", "redis://h/0", "--queue", "redis-streams", "--listen", "0.0.0.0:1"}, false},
	} {
		if err := run(t.Context(), append(tc.args, "--print-config"), io.Discard, io.Discard); (err == nil) != tc.ok {
			t.Errorf("%v: got %v, want it accepted: %v", tc.args, err, tc.ok)
		}
	}
}

func TestAVariableThatNobodyReadsIsRefused(t *testing.T) {
	for _, tc := range []struct{ name, value, want string }{
		{"SECKILL_LANS", "3", "did you mean SECKILL_LANES?"},
		{"SECKILL_TOKENKEY", "3", "did you mean SECKILL_TOKEN_KEY?"},
		{"SECKILL_PORT", "8080", "SECKILL_PORT"},
		{"SECKILL_VERSION", "true", "SECKILL_VERSION"},
		{"SECKILL_LANES", "3", ""},
		{"SECKILL_CONFIG", "", ""},
		{passwordEnv, "secret", ""},
		{"SECKILL_PORT", "tcp://10.0.0.1:80", ""},
		{"SECKILL_SERVICE_HOST", "10.0.0.1", ""},
		{"SECKILL_SERVICE_PORT_HTTP", "80", ""},
		{"SECKILL_PORT_80_TCP_ADDR", "10.0.0.1", ""},
		{"SECKILL_WEB_SERVICE_PORT", "80", ""},
	} {
		t.Run(tc.name+"="+tc.value, func(t *testing.T) {
			t.Setenv(tc.name, tc.value)
			err := run(t.Context(), []string{"--print-config"}, io.Discard, io.Discard)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestAMadeUpTokenIsForItsOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	p := startWith(t, dir, "--log-format", "json", "--instance", "shop")
	defer p.stop(t)
	found, err := filepath.Glob(filepath.Join(dir, "seckill-operator-token-*"))
	if err != nil || len(found) != 1 || !strings.Contains(p.stderr.String(), found[0]) {
		t.Fatalf("got files %v, %v and log %s, want one that the log names", found, err, p.stderr)
	}
	b, err := os.ReadFile(found[0])
	info, err2 := os.Stat(found[0])
	if err != nil || err2 != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("got %v, %v, %v, want a file of its owner", info, err, err2)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < 16 || strings.Contains(p.out+p.stderr.String(), token) {
		t.Errorf("got token %q and %s%s, want it nowhere else", token, p.out, p.stderr)
	}
}

func TestACommandsHelpHasItsFlagsOnly(t *testing.T) {
	for _, tc := range []struct{ command, has, not string }{
		{"operator add", "--db", "--lanes"}, {"migrate status", "--stock-db", "--redis"}, {"verify", "--repair", "--listen"}, {"serve", "--lanes", "--repair"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), append(strings.Fields(tc.command), "--help"), &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, tc.has) || strings.Contains(got, tc.not) {
			t.Errorf("%s: got %s, want %s and not %s", tc.command, got, tc.has, tc.not)
		}
	}
}

func TestAWrongConfigurationIsOneSentence(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"an unknown key", "trusted_proxy: x\n", `line 1: unknown key "trusted_proxy": did you mean "trusted-proxies"?`},
		{"a key with a typing error", "lanes: 3\nqeue: kafka\n", `line 2: unknown key "qeue": did you mean "queue"?`},
		{"a key that asks for something else", "version: true\n", "unknown key"},
		{"a key twice", "lanes: 3\nlanes: 4\n", "lanes"},
		{"a second document", "lanes: 3\n---\nbatch: 4\n", "second document"},
		{"a value that is none", "lanes: many\n", "lanes"},
		{"a value out of range", "lanes: 100\n", "1 to 64"},
		{"an unknown choice", "ids: dice\n", "snowflake"},
		{"a value that is a section", "queue:\n  name: kafka\n", "queue: want one value"},
		{"no value", "queue:\n", "queue: want one value"},
		{"a list where one value belongs", "queue: [a, b]\n", "queue: want one value"},
		{"a list with a comma in it", "trusted-proxies: ['10.0.0.0/8,::/0']\n", "without commas"},
		{"no keys", "- lanes\n", "want lines"},
		{"no YAML", "lanes: [\n", "yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := run(t.Context(), []string{"--print-config", "--config", write(t, tc.text)}, io.Discard, io.Discard)
			if err == nil {
				t.Fatal("got no error")
			}
			if got := oneLine(err); !strings.Contains(got, tc.want) || !strings.Contains(got, "--config") && !strings.Contains(got, "--") {
				t.Errorf("got %q, want %q in it", got, tc.want)
			}
		})
	}
	if err := run(t.Context(), []string{"--config", "/nowhere/x.yaml"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "/nowhere/x.yaml") {
		t.Errorf("got %v, want one about the file", err)
	}
	if got := effective(t, "--config", write(t, "# nothing yet\n")); got["lanes"] != "4  # default" {
		t.Errorf("got %q from an empty file, want the default", got["lanes"])
	}
}

// A flag whose name says that it is a secret is one, whoever adds it.
func TestEverySecretIsKnownAsOne(t *testing.T) {
	var c commands
	k, err := kong.New(&c, kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range k.Model.Flags {
		if placeholder := f.PlaceHolder; (placeholder == "SECRET" || placeholder == "TOKEN" || placeholder == "PASSWORD") && !secret(f) {
			t.Errorf("--%s is shown", f.Name)
		}
	}
}

func FuzzConfig(f *testing.F) {
	for _, s := range []string{"", "lanes: 3\n", "trusted-proxies: [a, b]\n", "a: &x\n  b: *x\n", "lanes: 3\n---\nlanes: 4\n", "? [a]\n: b\n", "<<: {lanes: 3}\n", "\x00", "lanes: !!binary aGk=\n"} {
		f.Add([]byte(s))
	}
	var c commands
	k, err := kong.New(&c, kong.Vars{"version": ""})
	if err != nil {
		f.Fatal(err)
	}
	flags := inFile(k.Model)
	known := map[string]bool{}
	for _, fl := range flags {
		known[fl.Name] = true
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		values, err := readConfig(b, flags)
		if err != nil {
			return
		}
		for name := range values {
			if !known[name] {
				t.Errorf("got a value for %q, which is no flag", name)
			}
		}
	})
}
