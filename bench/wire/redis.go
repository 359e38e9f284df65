package wire

import (
	"slices"
	"strings"
)

// redisTalk pairs answers with commands: they come in order, but for what the
// server pushes unasked.
type redisTalk struct {
	in, out    resp
	asked      queue[redisAsked]
	subscribed bool   // before RESP3 its messages look like answers
	vain       string // the command that was waited for in vain last
}

type redisAsked struct {
	command, subject, id string
	text                 string // of a command that waits
	noise                bool
}

func newRedis() *redisTalk { return &redisTalk{in: resp{requests: true}} }

func (t *redisTalk) client(b []byte) []Line {
	was := t.in.lost
	var lines []Line
	if t.in.feed(b, func(v *value) {
		if l, ok := t.command(v); ok {
			lines = append(lines, l)
		}
	}) && !was {
		lines = append(lines, notRead("RESP", "the client"))
	}
	return lines
}

func (t *redisTalk) server(b []byte) []Line {
	was := t.out.lost
	var lines []Line
	if t.out.feed(b, func(v *value) { lines = append(lines, t.answer(v)) }) && !was {
		lines = append(lines, notRead("RESP", "the server"))
	}
	return lines
}

func notRead(protocol, who string) Line {
	return Line{Text: "this does not follow " + protocol + ": what " + who + " says from here on is not read"}
}

func (t *redisTalk) command(v *value) (Line, bool) {
	var args []bytesOf
	for _, item := range v.items {
		args = append(args, item.text)
	}
	if len(args) == 0 {
		return Line{}, false // nothing, which Redis does not answer
	}
	name := strings.ToUpper(args[0].word(30))
	sub := ""
	if len(args) > 1 {
		sub = strings.ToUpper(args[1].word(30))
	}
	a := redisAsked{command: name}
	if slices.Contains(families, name) && sub != "" {
		a.command = name + " " + sub
	}
	a.subject = redisSubject(name, args)
	if name != "EVAL" && name != "EVAL_RO" {
		for _, item := range v.items[1:] {
			if a.id == "" {
				a.id = item.entry()
			}
		}
	}
	said := redisText(name, sub, args) + v.missing()
	a.noise = dull(name, sub)
	again := t.vain != "" && clip(said, mostText) == t.vain
	if slices.Contains(waits, name) {
		a.text = clip(said, mostText)
	}
	if strings.HasSuffix(name, "SUBSCRIBE") {
		t.subscribed = true // it is answered by a push for each channel
	} else {
		t.asked.push(a)
	}
	return Line{Command: a.command, Subject: a.subject, ID: a.id, Text: said, Noise: a.noise || again}, true
}

func (t *redisTalk) answer(v *value) Line {
	l := Line{Text: "-> " + v.show(), ID: v.entry()}
	if v.kind == '>' || v.kind == '*' && t.subscribed && pushes(v) {
		if len(v.items) > 0 {
			l.Command = strings.ToUpper(v.items[0].text.word(30))
		}
		if len(v.items) > 1 && !v.items[1].many() && !v.items[1].null {
			l.Subject = v.items[1].text.word(120)
		}
		return l
	}
	a, _ := t.asked.pop()
	l.Command, l.Subject = a.command, a.subject
	if l.ID == "" {
		l.ID = a.id
	}
	wrong := v.kind == '-' || v.kind == '!'
	nothing := v.null && slices.Contains(waits, a.command)
	if t.vain = ""; nothing {
		t.vain = a.text
	}
	l.Noise = nothing || a.noise && (!wrong || strings.HasPrefix(a.command, "CLIENT"))
	return l
}

// families are commands whose second word tells what they do.
var families = []string{"ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "DEBUG", "FUNCTION", "LATENCY", "MEMORY", "OBJECT", "PUBSUB", "SCRIPT", "XGROUP", "XINFO"}

// waits are commands that wait for something, and often in vain.
var waits = []string{"BRPOP", "BLPOP", "BLMOVE", "BRPOPLPUSH", "BLMPOP", "BZMPOP", "BZPOPMIN", "BZPOPMAX", "XREAD", "XREADGROUP"}

func dull(name, sub string) bool {
	switch name {
	case "HELLO", "AUTH", "CLIENT", "PING", "SELECT", "COMMAND", "INFO", "CLUSTER", "READONLY", "ROLE", "QUIT":
		return true
	case "CONFIG":
		return sub == "GET"
	case "SCRIPT":
		return sub == "LOAD" || sub == "EXISTS"
	case "FUNCTION":
		return sub == "LOAD"
	}
	return false
}

// pushes tells, on a connection that has subscribed, whether a value came unasked.
func pushes(v *value) bool {
	if len(v.items) < 3 {
		return false
	}
	switch string(v.items[0].text.kept) {
	case "message", "pmessage", "smessage", "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe":
		return true
	}
	return false
}

// redisSubject is the first key or channel of a command.
func redisSubject(name string, args []bytesOf) string {
	at := func(i int) string {
		if i < len(args) {
			return args[i].word(120)
		}
		return ""
	}
	counted := func(i int) string { // after the number of keys
		if n := at(i); n == "" || n == "0" {
			return ""
		}
		return at(i + 1)
	}
	switch name {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO", "BLMPOP", "BZMPOP":
		return counted(2)
	case "LMPOP", "ZMPOP", "SINTERCARD", "ZUNION", "ZINTER", "ZDIFF":
		return counted(1)
	case "XREAD", "XREADGROUP":
		for i := 1; i < len(args); i++ {
			if strings.EqualFold(at(i), "STREAMS") {
				return at(i + 1)
			}
		}
		return ""
	case "XGROUP", "XINFO", "OBJECT", "MEMORY", "BITOP":
		return at(2)
	case "HELLO", "AUTH", "CLIENT", "PING", "ECHO", "SELECT", "COMMAND", "INFO", "CLUSTER", "CONFIG", "ACL", "SCRIPT", "FUNCTION", "DEBUG", "LATENCY",
		"MULTI", "EXEC", "DISCARD", "UNWATCH", "WAIT", "WAITAOF", "ROLE", "READONLY", "QUIT", "SAVE", "BGSAVE", "BGREWRITEAOF", "LASTSAVE", "FLUSHALL",
		"FLUSHDB", "DBSIZE", "TIME", "SCAN", "KEYS", "MONITOR", "SHUTDOWN", "REPLICAOF", "SLOWLOG", "MODULE", "PUBSUB", "SWAPDB", "MIGRATE":
		return ""
	}
	return at(1)
}

// redisText prints a command. What may be a password is hidden, and of a script
// only the first line is shown.
func redisText(name, sub string, args []bytesOf) string {
	secret := func(i int) bool { return false }
	after := func(words ...string) int { // the first argument behind one of these
		for i, a := range args {
			if i > 0 && slices.Contains(words, strings.ToUpper(a.word(30))) {
				return i + 1
			}
		}
		return len(args)
	}
	switch {
	case name == "AUTH":
		secret = func(i int) bool { return i > 0 }
	case name == "HELLO", name == "MIGRATE":
		from := after("AUTH", "AUTH2")
		secret = func(i int) bool { return i == from || i == from+1 }
	case name == "ACL" && sub == "SETUSER":
		secret = func(i int) bool {
			return i > 2 && len(args[i].kept) > 0 && strings.IndexByte("><#!", args[i].kept[0]) >= 0
		}
	case name == "CONFIG" && sub == "SET":
		secret = func(i int) bool {
			setting := strings.ToLower(args[max(0, i-1)].word(60))
			return i > 2 && i%2 == 1 && (strings.Contains(setting, "pass") || strings.Contains(setting, "auth"))
		}
	}
	script := -1
	switch {
	case name == "EVAL", name == "EVAL_RO":
		script = 1
	case name == "SCRIPT" && sub == "LOAD", name == "FUNCTION" && sub == "LOAD":
		script = after("LOAD", "REPLACE")
		if last := len(args) - 1; name == "FUNCTION" {
			script = last
		}
	}
	words := []string{name}
	for i := 1; i < len(args); i++ {
		switch {
		case i == 1 && slices.Contains(families, name):
			words = append(words, sub)
		case i == 1 && strings.HasPrefix(name, "EVALSHA") && args[i].size == 40:
			words = append(words, args[i].word(40)[:8]+"…")
		case secret(i):
			words = append(words, hidden)
		case i == script:
			words = append(words, firstLine(args[i]))
		default:
			words = append(words, args[i].word(200))
		}
	}
	return strings.Join(words, " ")
}

func firstLine(script bytesOf) string {
	first, rest, more := strings.Cut(strings.TrimSpace(string(script.kept)), "\n")
	q := text([]byte(strings.TrimSpace(first))).quote(60)
	if more && strings.TrimSpace(rest) != "" || len(script.kept) < script.size {
		q += "…"
	}
	return q
}
