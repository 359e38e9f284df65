package report

// faultTitles are the crash lab's faults in words; those of the first suites are
// in faultTitle.
func faultTitles() map[string]text {
	return map[string]text{
		"consumer-kill-on-receive":   say("consumer killed on receive"),
		"consumer-kill-after-ack":    say("consumer killed after ack"),
		"consumer-kill-slow-handler": say("consumer killed in a slow handler"),
		"producer-kill":              say("producer killed"),
		"zombie-consumer":            say("zombie consumer"),
		"consumer-joins-leaves":      say("consumer joins, leaves"),
		"slow-consumer":              say("slow consumer"),
		"poison":                     say("poison message"),
		"broker-stop":                say("broker stopped"),
		"broker-freeze":              say("broker frozen"),
		"power-loss":                 say("power lost"),
		"slow-fsync":                 say("slow fsync, then killed"),
		"disk-full":                  say("disk full"),
		"lost-reply-publish":         say("reply to publish lost"),
		"lost-reply-receive":         say("reply to receive lost"),
		"reset":                      say("connections reset"),
		"black-hole-consumer":        say("consumer in a black hole"),
		"latency":                    say("slow network"),
		"bandwidth":                  say("narrow network"),
		"idle-close":                 say("closed for idleness"),
		"database-down":              say("database down"),
		"database-kill":              say("database killed"),
		"commit-reply-lost":          say("reply to COMMIT lost"),
		"queue-limit":                say("queue limit reached"),
		"unroutable":                 say("unroutable publish"),
		"del-consumer":               say("consumer deleted in its group"),
		"key-delete":                 say("queue deleted"),
		"group-delete":               say("group deleted"),
		"script-flush":               say("scripts flushed"),
		"memory-end":                 say("memory at its end"),
		"bell":                       say("bell lost"),
		"leader-kill":                say("leader killed"),
		"leader-partition":           say("leader cut off"),
		"majority-loss":              say("majority lost"),
		"follower-kill":              say("follower killed"),
	}
}
