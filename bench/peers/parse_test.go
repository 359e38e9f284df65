package peers

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded is what a tool really wrote.
func recorded(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func producer(records, warmup int64) func(string) (float64, error) {
	return func(out string) (float64, error) { return parseProducerPerformance(out, records, warmup) }
}

func consumerOf(messages int64) func(string) (float64, error) {
	return func(out string) (float64, error) { return parseConsumerPerformance(out, messages) }
}

func perf(what string) func(string) (float64, error) {
	return func(out string) (float64, error) { return parsePerfTest(out, what) }
}

func TestRecordedOutputsAreUnderstood(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		parse func(string) (float64, error)
		want  float64
	}{
		"the requests a second":                           {"redis-benchmark.txt", parseRedisBenchmark, 40650.41},
		"the steady state where there was a warm-up":      {"producer.txt", producer(1_200_000, 300_000), 113164.843455},
		"the whole where there was none":                  {"producer-without-warmup.txt", producer(20_000, 0), 5715.918834},
		"the rate while fetching, not that with the join": {"consumer.txt", consumerOf(1_000_000), 194051.6004},
		// (1.017 s × 6937 + 0.985 s × 7444 + 0.996 s × 7497 + 1.006 s × 8301) / 4.004 s
		"what was confirmed, the first second left out": {"perftest-confirmed.txt", perf("confirmed"), (1.017*6937 + .985*7444 + .996*7497 + 1.006*8301) / 4.004},
		"what was sent":                  {"perftest-sent.txt", perf("sent"), (.999*16368 + .996*15718 + 1*17782 + 1.01*18658) / 4.005},
		"what was received":              {"perftest-received.txt", perf("received"), 30529},
		"the average of a run too short": {"perftest-short.txt", perf("received"), 6060},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.parse(recorded(t, c.file))
			if err != nil || math.Abs(got-c.want) > c.want*1e-9 {
				t.Errorf("%s: got %v, %v, want %v", c.file, got, err, c.want)
			}
		})
	}
}

func TestWhatATruthfulRateCannotBeReadFromIsAnError(t *testing.T) {
	file := func(name string) string { return recorded(t, name) }
	without := func(s, line string) string {
		kept := ""
		for l := range strings.Lines(s) {
			if !strings.Contains(l, line) {
				kept += l
			}
		}
		return kept
	}
	for name, c := range map[string]struct {
		out   string
		parse func(string) (float64, error)
		says  string
	}{
		"a command that Redis refused":               {file("redis-benchmark-refused.txt"), parseRedisBenchmark, "Error from server"},
		"no output of redis-benchmark":               {"\n", parseRedisBenchmark, "nothing"},
		"a header alone":                             {without(file("redis-benchmark.txt"), "LPUSH"), parseRedisBenchmark, "no result"},
		"two results":                                {file("redis-benchmark.txt") + "\"PING\",\"1.00\"\n", parseRedisBenchmark, "PING"},
		"a rate of nothing":                          {strings.Replace(file("redis-benchmark.txt"), "40650.41", "0.00", 1), parseRedisBenchmark, "0.00"},
		"a rate that is none":                        {strings.Replace(file("redis-benchmark.txt"), "40650.41", "-nan", 1), parseRedisBenchmark, "-nan"},
		"a topic that is not there":                  {file("producer-refused.txt"), producer(3, 0), "TimeoutException"},
		"fewer records than were asked for":          {file("producer.txt"), producer(1_200_001, 300_000), "1200000"},
		"another warm-up than was asked for":         {file("producer.txt"), producer(1_200_000, 200_000), "900000"},
		"a warm-up where none was asked for":         {file("producer.txt"), producer(1_200_000, 0), "steady"},
		"no steady state":                            {without(file("producer.txt"), "steady state records"), producer(1_200_000, 300_000), "900000"},
		"a summary cut short":                        {strings.TrimSuffix(without(file("producer.txt"), "steady state records"), ".\n"), producer(1_200_000, 300_000), "not understood"},
		"a warning among the summaries":              {"Killed\n" + file("producer.txt"), producer(1_200_000, 300_000), "Killed"},
		"a consumer that gave up":                    {file("consumer-short.txt"), consumerOf(9_000_000), "WARNING"},
		"a consumer that got too few":                {file("consumer.txt"), consumerOf(1_000_337), "1000336"},
		"no output of the consumer":                  {"", consumerOf(1), "nothing"},
		"a consumer's other columns":                 {strings.Replace(file("consumer.txt"), ", fetch.nMsg.sec", "", 1), consumerOf(1), "not understood"},
		"a consumer's header alone":                  {consumerHeader + "\n", consumerOf(1), "no result"},
		"messages that came back":                    {file("perftest-returned.txt"), perf("sent"), "refused"},
		"a queue that is another":                    {file("perftest-refused.txt"), perf("sent"), "exception"},
		"a run that was stopped":                     {file("perftest-stopped.txt"), perf("received"), "test stopped"},
		"a run that did not end":                     {without(file("perftest-sent.txt"), "test stopped"), perf("sent"), "limit"},
		"no summary":                                 {without(file("perftest-sent.txt"), "sending rate"), perf("sent"), "no summary"},
		"nothing of what was asked for":              {file("perftest-sent.txt"), perf("received"), "not understood"},
		"a rate that PerfTest does not have":         {file("perftest-sent.txt"), perf("lost"), "lost"},
		"an interval before the one that it follows": {strings.Replace(file("perftest-sent.txt"), "time 3.001", "time 1.001", 1), perf("sent"), "not understood"},
		"seconds that stood still":                   {strings.NewReplacer("16368", "0", "15718", "0", "17782", "0", "18658", "0").Replace(file("perftest-sent.txt")), perf("sent"), "nothing was sent"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.parse(c.out)
			if err == nil {
				t.Fatalf("got a rate of %v, want an error", got)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, want it to name %q", err, c.says)
			}
		})
	}
}

// Whatever a tool writes, there is a rate that is one, or an error that says why.
func FuzzParsers(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("got recorded outputs %v, %v", files, err)
	}
	for _, name := range files {
		f.Add(recorded(f, filepath.Base(name)))
	}
	f.Add(outcomeMark + `{"Rate":1e400}`)
	f.Fuzz(func(t *testing.T, out string) {
		for name, parse := range map[string]func(string) (float64, error){
			"redis-benchmark": parseRedisBenchmark, "producer": producer(1_200_000, 300_000), "without warm-up": producer(20_000, 0),
			"consumer": consumerOf(1), "confirmed": perf("confirmed"), "sent": perf("sent"), "received": perf("received"),
		} {
			rate, err := parse(out)
			switch {
			case err != nil && strings.TrimSpace(err.Error()) == "":
				t.Errorf("%s: an error that says nothing", name)
			case err == nil && !(rate > 0 && rate < 1e13):
				t.Errorf("%s: got a rate of %v from %q", name, rate, out)
			}
		}
		if _, err := parseOutcome(out); err == nil && !strings.Contains(out, outcomeMark) {
			t.Errorf("got an outcome from %q", out)
		}
	})
}
