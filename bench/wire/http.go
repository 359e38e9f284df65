package wire

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// httpTalk reads HTTP/1.1. Of heads it shows the first line only, so that no
// credentials are shown.
type httpTalk struct {
	in, out httpSide
	asked   queue[httpAsked]
	raw     bool // after 101 something else is spoken
}

type httpAsked struct {
	command, subject string
	head, noise      bool
}

// httpSide is one direction.
type httpSide struct {
	lost  bool
	line  bytesOf // a line of a head or of chunks under way
	heads int     // bytes of the head so far
	where int     // one of the below
	left  int     // bytes of a body or a chunk to come

	first           string // line of the message
	length          int    // of its body; -1: not told
	chunked, packed bool
	events          bool // the body is a stream of server-sent events
	json, text      bool
	body            bytesOf
	event           bytesOf
	answered        httpAsked // of an answer
}

const (
	inHead = iota
	inBody
	inChunkSize
	inChunk
	inChunkEnd
	inTrailer
	untilEnd // of the connection
)

const mostHTTPBody = 120

func newHTTP() *httpTalk { return &httpTalk{} }

func (t *httpTalk) client(b []byte) (lines []Line) { return t.feed(&t.in, b, "the client") }
func (t *httpTalk) server(b []byte) (lines []Line) { return t.feed(&t.out, b, "the server") }

func (t *httpTalk) feed(s *httpSide, b []byte, who string) (lines []Line) {
	for len(b) > 0 && !s.lost && !t.raw {
		var n int
		switch s.where {
		case inBody, inChunk:
			n = min(len(b), s.left)
			lines = append(lines, s.take(b[:n])...)
			if s.left -= n; s.left == 0 {
				if s.where == inChunk {
					s.where = inChunkEnd
				} else {
					lines = append(lines, t.finish(s)...)
				}
			}
		case untilEnd:
			n = len(b)
			lines = append(lines, s.take(b)...)
		default:
			n = bytes.IndexByte(b, '\n') + 1
			whole := n > 0
			if !whole {
				n = len(b)
			}
			s.line.take(b[:n], 4<<10)
			if s.heads += n; s.heads > most {
				s.lost = true
			} else if whole {
				line := strings.TrimRight(string(s.line.kept), "\r\n")
				s.line = bytesOf{}
				lines = append(lines, t.one(s, line)...)
			}
		}
		b = b[n:]
	}
	if s.lost && s.line.size+s.heads >= 0 {
		s.heads = -1 << 40
		s.line = bytesOf{}
		lines = append(lines, notRead("HTTP/1.1", who))
	}
	return lines
}

// one reads a line of a head, of chunks or of a trailer.
func (t *httpTalk) one(s *httpSide, line string) []Line {
	switch s.where {
	case inChunkSize:
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 31)
		s.heads = 0
		switch {
		case err != nil:
			s.lost = true
		case n == 0:
			s.where = inTrailer
		default:
			s.left, s.where = int(n), inChunk
		}
	case inChunkEnd:
		s.where = inChunkSize
	case inTrailer:
		if line == "" {
			return t.finish(s)
		}
	case inHead:
		switch {
		case s.first == "" && line == "": // between messages
		case s.first == "":
			s.begin(t, line)
		case line == "":
			return t.headed(s)
		default:
			s.header(line)
		}
	}
	return nil
}

var (
	httpRequest = regexp.MustCompile(`^[A-Z]{1,20} \S+ HTTP/1\.[01]$`)
	httpStatus  = regexp.MustCompile(`^HTTP/1\.[01] [0-9]{3}( |$)`)
)

func (s *httpSide) begin(t *httpTalk, line string) {
	s.length, s.first = -1, line
	if s == &t.in {
		s.lost = !httpRequest.MatchString(line)
	} else {
		s.lost = !httpStatus.MatchString(line)
	}
}

func (s *httpSide) header(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.ToLower(strings.TrimSpace(value))
	switch strings.ToLower(name) {
	case "content-length":
		n, err := strconv.ParseUint(value, 10, 40)
		if err != nil {
			s.lost = true
		}
		s.length = int(n)
	case "transfer-encoding":
		s.chunked = strings.HasSuffix(value, "chunked")
	case "content-encoding":
		s.packed = value != "" && value != "identity"
	case "content-type":
		s.events = strings.HasPrefix(value, "text/event-stream")
		s.json = strings.Contains(value, "json")
		s.text = s.json || strings.HasPrefix(value, "text/")
	}
}

// headed is called where a head ends, and finds where the body does.
func (t *httpTalk) headed(s *httpSide) (lines []Line) {
	s.heads = 0
	request := s == &t.in
	code := ""
	if !request {
		code = s.first[9:12]
		if code[0] == '1' && code != "101" {
			l := Line{Text: "-> " + s.first[9:], Noise: true}
			*s = httpSide{}
			return []Line{l}
		}
		s.answered, _ = t.asked.pop()
	} else {
		method, rest, _ := strings.Cut(s.first, " ")
		target, _, _ := strings.Cut(rest, " ")
		path := target
		if u, err := url.Parse(target); err == nil && method != "CONNECT" {
			path = u.EscapedPath()
		}
		s.answered = httpAsked{method + " " + path, path, method == "HEAD", httpDull(path)}
		t.asked.push(s.answered)
	}
	switch {
	case code == "101":
		t.raw = true
		l := t.line(s)
		l.Text += ": what is said from here on is not read"
		return []Line{l}
	case !request && (s.answered.head || code == "204" || code == "304"):
		return t.finish(s)
	case s.chunked:
		s.where = inChunkSize
	case s.length > 0:
		s.where, s.left = inBody, s.length
	case s.length == 0 || request:
		return t.finish(s)
	default:
		s.where = untilEnd
		if !s.events {
			l := t.line(s)
			l.Text += ", and a body until the connection ends"
			return []Line{l}
		}
	}
	if s.events {
		lines = []Line{t.line(s)}
	}
	return lines
}

func httpDull(path string) bool {
	switch path {
	case "/healthz", "/health", "/readyz", "/livez", "/metrics", "/favicon.ico":
		return true
	}
	return false
}

// take reads a piece of a body. Events have a line each: they may never end.
func (s *httpSide) take(b []byte) (lines []Line) {
	if !s.events {
		s.body.take(b, mostHTTPBody*4)
		return nil
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		n := i + 1
		if i < 0 {
			n = len(b)
		}
		s.event.take(b[:n], mostText*4)
		b = b[n:]
		if i < 0 {
			continue
		}
		said := strings.TrimSpace(string(s.event.kept))
		s.event = bytesOf{}
		if strings.HasPrefix(said, "data:") {
			lines = append(lines, Line{Command: s.answered.command, Subject: s.answered.subject, Text: "-> event " + unsecret(said), Noise: s.answered.noise})
		}
	}
	return lines
}

func (t *httpTalk) line(s *httpSide) Line {
	text := s.first[:strings.LastIndexByte(s.first, ' ')]
	if s == &t.out {
		text = "-> " + s.first[9:]
	}
	return Line{Command: s.answered.command, Subject: s.answered.subject, Text: unsecret(text), Noise: s.answered.noise}
}

// finish ends a message.
func (t *httpTalk) finish(s *httpSide) (lines []Line) {
	if !s.events || s.where == inHead {
		l := t.line(s)
		switch {
		case s.body.size == 0:
		case s.packed || !s.text && s == &t.out || !s.json && s == &t.in:
			l.Text += fmt.Sprintf(" (%d bytes)", s.body.size)
		default:
			l.Text += " " + s.shown()
		}
		lines = []Line{l}
	}
	*s = httpSide{}
	return lines
}

func (s *httpSide) shown() string {
	said := unsecret(string(whole(s.body.kept, s.body.size)))
	if len(said) <= mostHTTPBody && len(s.body.kept) == s.body.size {
		return clip(said, mostText)
	}
	return string(whole([]byte(said[:min(len(said), mostHTTPBody)]), len(said)+1)) + fmt.Sprintf("… (%d bytes)", s.body.size)
}

var (
	secretField = regexp.MustCompile(`(?i)("[^"]*(?:passw|secret|token)[^"]*"\s*:\s*")(?:[^"\\]|\\.)*`)
	secretParam = regexp.MustCompile(`(?i)([?&][^=&\s]*(?:passw|secret|token)[^=&\s]*=)[^&\s]*`)
	secretUser  = regexp.MustCompile(`//[^/@\s]*@`)
)

func unsecret(s string) string {
	s = secretField.ReplaceAllString(s, "${1}"+hidden)
	s = secretParam.ReplaceAllString(s, "${1}"+hidden)
	return secretUser.ReplaceAllString(s, "//"+hidden+"@")
}
