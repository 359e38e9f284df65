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
	if strings.Contains(out.String(), word) || strings.Count(out.String(), "xxxxx") != 7 {
		t.Errorf("got %s, want six secrets left out", out.String())
	}
	var plain strings.Builder
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "token-key") { // what is left out is too short
			plain.WriteString(line)
		}
	}
	got := effective(t, "--config", write(t, plain.String()))
	if want := "amqp://u:xxxxx@h/?queue=q  # file"; got["queue"] != want {
		t.Errorf("got queue %q, want %q", got["queue"], want)
	}
}

func TestAWrongConfigurationIsOneSentence(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"an unknown key", "trusted_proxy: x\n", `line 1: unknown key "trusted_proxy": did you mean "trusted-proxies"?`},
		{"a key with a typing error", "lanes: 3\nqeue: kafka\n", `line 2: unknown key "qeue": did you mean "queue"?`},
		{"a key that asks for something else", "version: true\n", "unknown key"},
		{"a key twice", "lanes: 3\nlanes: 4\n", "lanes"},
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
