package broker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"time"
)

// rabbitLimits asks a node of ours for the limits that can block its publishers
// or close its consumers' channels in the middle of a measurement. Its protocol
// does not tell, and its own tool takes several seconds, so that this asks as
// that does, through the runtime's own protocol. Nil: it does not answer.
func rabbitLimits(ctx context.Context, node, dir string, env []string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	got, err := askErlang(ctx, dir, env, node, `
Say("net_ticktime", net_kernel, get_net_ticktime, []),
Say("consumer_timeout", application, get_env, [rabbit, consumer_timeout]),
Say("vm_memory_high_watermark", vm_memory_monitor, get_vm_memory_high_watermark, []),
Say("vm_memory_limit_bytes", vm_memory_monitor, get_memory_limit, []),
Say("disk_free_limit_bytes", rabbit_disk_monitor, get_disk_free_limit, [])`)
	if err != nil {
		return nil
	}
	return got
}

// rabbitWatermark sets a node's memory watermark and returns what it was, both as
// Erlang writes them. It lasts until the node ends.
func rabbitWatermark(ctx context.Context, node, dir string, env []string, to string) (was string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	got, err := askErlang(ctx, dir, env, node, fmt.Sprintf(`
Say("was", vm_memory_monitor, get_vm_memory_high_watermark, []),
Say("set", vm_memory_monitor, set_vm_memory_high_watermark, [%s])`, to))
	if err != nil {
		return "", err
	}
	if got["was"] == "" || got["set"] != "ok" {
		return "", fmt.Errorf("the node %s did not take %s for its watermark: it answered %v", node, to, got)
	}
	return got["was"], nil
}

// rabbitAckTimeout sets how long a node waits for an ack, for channels that are
// opened from now on, which look every half of that. It lasts until the node ends.
func rabbitAckTimeout(ctx context.Context, node, dir string, env []string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	got, err := askErlang(ctx, dir, env, node, fmt.Sprintf(`
Say("timeout", application, set_env, [rabbit, consumer_timeout, %d]),
Say("tick", application, set_env, [rabbit, channel_tick_interval, %d])`, within.Milliseconds(), within.Milliseconds()/2))
	if err != nil {
		return err
	}
	if got["timeout"] != "ok" || got["tick"] != "ok" {
		return fmt.Errorf("the node %s did not take %v for its consumer_timeout: it answered %v", node, within, got)
	}
	return nil
}

// askErlang runs a script beside a node, called N in it, and returns the lines
// name=value that it says. Say calls a function of the node and says its value;
// what a version does not know is left out. env is the node's own, and its
// cookie is in dir.
func askErlang(ctx context.Context, dir string, env []string, node, script string) (map[string]string, error) {
	all := fmt.Sprintf(`
N = '%s',
Say = fun(Name, M, F, A) ->
  case rpc:call(N, M, F, A, 5000) of
    {badrpc, _} -> ok;
    undefined -> ok;
    {ok, V} -> io:format("~s=~tp~n", [Name, V]);
    V -> io:format("~s=~tp~n", [Name, V])
  end end,
%s,
halt(0).`, node, script)
	cmd := exec.CommandContext(ctx, "erl", "-noinput", "-hidden", "-connect_all", "false",
		"-start_epmd", "false", // it would outlive us
		"-kernel", "inet_dist_use_interface", "{127,0,0,1}",
		"-sname", fmt.Sprintf("ask%08x@localhost", rand.Uint32()),
		"-eval", strings.ReplaceAll(all, "\n", " "))
	cmd.Env, cmd.Dir = append(os.Environ(), env...), dir // there is the cookie
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask the node %s: %w", node, err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			got[name] = value
		}
	}
	return got, nil
}
