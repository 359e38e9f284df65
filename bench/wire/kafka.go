package wire

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaTalk pairs answers with requests by their correlation ids.
type kafkaTalk struct {
	in, out frames
	asked   []kafkaAsked
	topics  map[[16]byte]string // names that were told
	fetched string              // the last fetch, to know one that says nothing new
}

type kafkaAsked struct {
	id           int
	key, version int16
	subject      string
	noise        bool
}

const mostTopics = 128

func newKafka() *kafkaTalk { return &kafkaTalk{topics: map[[16]byte]string{}} }

func kafkaSize(b []byte) int {
	if len(b) < 4 {
		return 0
	}
	n := int(int32(binary.BigEndian.Uint32(b)))
	if n < 4 || n > 1<<30 {
		return -1
	}
	return 4 + n
}

func (t *kafkaTalk) client(b []byte) (lines []Line) {
	was := t.in.lost
	t.in.feed(b, kafkaSize, func(kept []byte, total int) { lines = append(lines, t.request(kept[4:], total-4)) })
	if t.in.lost && !was {
		lines = append(lines, notRead("Kafka's protocol", "the client"))
	}
	return lines
}

func (t *kafkaTalk) server(b []byte) (lines []Line) {
	was := t.out.lost
	t.out.feed(b, kafkaSize, func(kept []byte, total int) { lines = append(lines, t.answer(kept[4:], total-4)) })
	if t.out.lost && !was {
		lines = append(lines, notRead("Kafka's protocol", "the server"))
	}
	return lines
}

func (t *kafkaTalk) request(b []byte, total int) Line {
	c := cursor{rest: b}
	a := kafkaAsked{key: int16(c.u16()), version: int16(c.u16()), id: c.u32()}
	name := kmsg.NameForKey(a.key)
	if c.bad || name == "" || name == "Unknown" {
		return Line{Text: fmt.Sprintf("a request that nobody knows (%d bytes)", total)}
	}
	a.noise = kafkaDull(a.key)
	l := Line{Command: fmt.Sprintf("%s v%d", name, a.version), Noise: a.noise}
	if req, why := t.readRequest(a, &c, total); why != nil {
		l.Text = fmt.Sprintf("%s (%d bytes, not read: %v)", l.Command, total, why)
	} else {
		told := t.tellRequest(req)
		l.Subject, l.ID, l.Text = told.subject, told.id, l.Command+told.text
		l.Noise = l.Noise || told.noise
		if told.text == "" {
			l.Text += fmt.Sprintf(" (%d bytes)", total)
		}
	}
	a.subject = l.Subject
	if len(t.asked) == mostAsked {
		t.asked = slices.Delete(t.asked, 0, 1)
	}
	t.asked = append(t.asked, a)
	return l
}

var (
	errLong = errors.New("too long")
	errNew  = errors.New("of a version that is not known here")
)

func (t *kafkaTalk) readRequest(a kafkaAsked, c *cursor, total int) (req kmsg.Request, why error) {
	req = kmsg.RequestForKey(a.key)
	switch {
	case total > most-4:
		return nil, errLong
	case req == nil || a.version < 0 || a.version > req.MaxVersion():
		return nil, errNew
	}
	req.SetVersion(a.version)
	if n := int16(c.u16()); n > 0 { // the client's name
		c.take(int(n))
	}
	if req.IsFlexible() {
		skipTags(c)
	}
	if c.bad {
		return nil, errShort
	}
	return req, read(req, c.rest)
}

var errShort = errors.New("it ends early")

// read keeps a fault of the library from being one of the stream.
func read(m interface{ ReadFrom([]byte) error }, b []byte) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%v", fault)
		}
	}()
	return m.ReadFrom(b)
}

// skipTags skips the tagged fields of a flexible head.
func skipTags(c *cursor) {
	uvarint := func() int {
		v, n := binary.Uvarint(c.rest)
		if n <= 0 || v > most {
			n = -1
		}
		c.take(n)
		return int(v)
	}
	for n := uvarint(); n > 0 && !c.bad; n-- {
		uvarint()
		c.take(uvarint())
	}
}

func (t *kafkaTalk) answer(b []byte, total int) Line {
	c := cursor{rest: b}
	id := c.u32()
	i := slices.IndexFunc(t.asked, func(a kafkaAsked) bool { return a.id == id })
	if i < 0 {
		return Line{Text: fmt.Sprintf("an answer to a request that was not read (%d bytes)", total)}
	}
	a := t.asked[i]
	t.asked = slices.Delete(t.asked, 0, i+1) // those before, with acks=0, got none
	name := kmsg.NameForKey(a.key)
	l := Line{Command: fmt.Sprintf("%s v%d", name, a.version), Subject: a.subject, Noise: a.noise}
	resp, why := readAnswer(a, &c, total)
	if why != nil {
		l.Text = fmt.Sprintf("%s: (%d bytes, not read: %v)", name, total, why)
		return l
	}
	told := t.tellAnswer(resp)
	l.ID, l.Text = told.id, name+":"+told.text
	if told.subject != "" {
		l.Subject = told.subject
	}
	if told.text == "" {
		l.Text += fmt.Sprintf(" %d bytes", total)
	}
	l.Noise = (l.Noise || told.noise) && !told.wrong
	return l
}

func readAnswer(a kafkaAsked, c *cursor, total int) (kmsg.Response, error) {
	resp := kmsg.ResponseForKey(a.key)
	switch {
	case total > most-4:
		return nil, errLong
	case resp == nil || a.version < 0 || a.version > resp.MaxVersion():
		return nil, errNew
	}
	resp.SetVersion(a.version)
	if a.key == int16(kmsg.ApiVersions) && len(c.rest) > 1 && binary.BigEndian.Uint16(c.rest) == 35 {
		resp.SetVersion(0) // so a broker answers that does not know the version
	}
	if resp.IsFlexible() && a.key != int16(kmsg.ApiVersions) {
		skipTags(c)
	}
	if c.bad {
		return nil, errShort
	}
	return resp, read(resp, c.rest)
}

func kafkaDull(key int16) bool {
	switch kmsg.Key(key) {
	case kmsg.Metadata, kmsg.ApiVersions, kmsg.DescribeConfigs, kmsg.Heartbeat, kmsg.SASLHandshake, kmsg.SASLAuthenticate:
		return true
	}
	return false
}

func (t *kafkaTalk) learn(id [16]byte, name string) {
	if id != [16]byte{} && name != "" && len(t.topics) < mostTopics {
		t.topics[id] = clip(name, 250)
	}
}

// topic is its name, as far as it is known.
func (t *kafkaTalk) topic(name string, id [16]byte) string {
	if name != "" {
		return name
	}
	if known := t.topics[id]; known != "" {
		return known
	}
	return "id:" + hex.EncodeToString(id[:])
}
