package proxy

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Protocol is how answers are paired with requests.
type Protocol int

const (
	// Plain is a connection on which each answer follows its request, and no
	// request is sent before: Redis, where a pipeline is one request, and
	// PostgreSQL. An answer is known by its first bytes.
	Plain Protocol = iota
	// AMQP pairs confirms with the publishes that they confirm.
	AMQP
	// Kafka pairs by correlation id.
	Kafka
)

// Speaks is the protocol of a kind of broker.
func Speaks(kind string) Protocol {
	switch kind {
	case "rabbitmq":
		return AMQP
	case "kafka":
		return Kafka
	}
	return Plain
}

func (p Protocol) dialogue() dialogue {
	switch p {
	case AMQP:
		return &amqpDialogue{}
	case Kafka:
		return &kafkaDialogue{}
	}
	return &plainDialogue{}
}

// dialogue follows what is said on one connection.
type dialogue interface {
	// request sees what the client says.
	request(b []byte)
	// reply sees what the server says, and returns what of it may pass now.
	// It may hold back what it must see more of. lost says that loses chose the
	// answer which follows what passes.
	reply(b []byte, loses func(request, reply []byte) bool) (pass []byte, lost bool)
}

// plainDialogue takes all that was said since the last answer as the request.
type plainDialogue struct {
	asked    []byte
	answered bool
}

// mostAsked is how much of a request is kept for its Match.
const mostAsked = 16 << 10

func (d *plainDialogue) request(b []byte) {
	if d.answered {
		d.asked, d.answered = d.asked[:0], false
	}
	d.asked = append(d.asked, b[:min(len(b), mostAsked-len(d.asked))]...)
}

func (d *plainDialogue) reply(b []byte, loses func(request, reply []byte) bool) ([]byte, bool) {
	first := !d.answered && len(d.asked) > 0
	d.answered = true
	if first && loses(d.asked, b) {
		return nil, true
	}
	return b, false
}

// frames cuts one direction of a stream.
type frames struct {
	held []byte // the beginning of a frame that does not yet tell its size
	skip int    // bytes left of the frame under way
}

// walk shows each frame's beginning to see, until see says that it is lost.
// size tells the whole length of a frame that begins so; 0: more must come.
func (f *frames) walk(b []byte, size func([]byte) int, see func(frame []byte) (lost bool)) (pass []byte, lost bool) {
	data := b
	if len(f.held) > 0 {
		data = slices.Concat(f.held, b)
		f.held = nil
	}
	i := 0
	for i < len(data) {
		if f.skip > 0 {
			n := min(f.skip, len(data)-i)
			f.skip -= n
			i += n
			continue
		}
		n := size(data[i:])
		if n == 0 {
			f.held = bytes.Clone(data[i:])
			break
		}
		if see(data[i:min(i+n, len(data))]) {
			return data[:i], true
		}
		f.skip = n
	}
	return data[:i], false
}

// kafkaDialogue knows requests by their correlation ids; answers come in the
// order of their requests, and acks=0 gets none.
type kafkaDialogue struct {
	in, out frames
	asked   []kafkaAsked
}

type kafkaAsked struct {
	id    int32
	frame []byte
}

// kafkaSize wants the size, and what both heads begin with: of a request the
// api key, its version and the correlation id, of an answer the id.
func kafkaSize(head int) func([]byte) int {
	return func(b []byte) int {
		if len(b) < 4 {
			return 0
		}
		n := 4 + int(binary.BigEndian.Uint32(b))
		if len(b) < min(n, head) {
			return 0
		}
		return n
	}
}

func (d *kafkaDialogue) request(b []byte) {
	d.in.walk(b, kafkaSize(12), func(f []byte) bool {
		if len(f) >= 12 {
			id := int32(binary.BigEndian.Uint32(f[8:]))
			d.asked = append(d.asked, kafkaAsked{id, bytes.Clone(f[:min(len(f), mostAsked)])})
		}
		return false
	})
}

func (d *kafkaDialogue) reply(b []byte, loses func(request, reply []byte) bool) ([]byte, bool) {
	return d.out.walk(b, kafkaSize(8), func(f []byte) bool {
		if len(f) < 8 {
			return false
		}
		id := int32(binary.BigEndian.Uint32(f[4:]))
		i := slices.IndexFunc(d.asked, func(a kafkaAsked) bool { return a.id == id })
		if i < 0 {
			return false
		}
		asked := d.asked[i].frame
		d.asked = slices.Delete(d.asked, 0, i+1)
		return loses(asked, f)
	})
}

// amqpDialogue counts the publishes of each channel, as the broker does for its
// confirms.
type amqpDialogue struct {
	in, out  frames
	channels map[uint16]*amqpChannel
}

type amqpChannel struct {
	confirms bool
	tag      uint64
	asked    []amqpAsked // not yet confirmed, in order
}

type amqpAsked struct {
	tag   uint64
	frame []byte
}

// The methods of AMQP 0-9-1 that matter here, class and method in one.
const (
	channelOpen   = 20<<16 | 10
	basicPublish  = 60<<16 | 40
	basicAck      = 60<<16 | 80
	basicNack     = 60<<16 | 120
	confirmSelect = 85<<16 | 10
)

// amqpSize wants all of a confirm: type, channel, size, method, tag, multiple.
func amqpSize(b []byte) int {
	const greeting = "AMQP"
	if n := min(len(b), len(greeting)); string(b[:n]) == greeting[:n] {
		if len(b) < 8 {
			return 0
		}
		return 8
	}
	if len(b) < 7 {
		return 0
	}
	n := 7 + int(binary.BigEndian.Uint32(b[3:])) + 1
	if len(b) < min(n, 20) {
		return 0
	}
	return n
}

// amqpMethod returns the channel and the method of a frame; 0: it is no method.
func amqpMethod(f []byte) (channel uint16, method uint32) {
	if len(f) < 11 || f[0] != 1 {
		return 0, 0
	}
	return binary.BigEndian.Uint16(f[1:]), binary.BigEndian.Uint32(f[7:])
}

func (d *amqpDialogue) request(b []byte) {
	d.in.walk(b, amqpSize, func(f []byte) bool {
		number, method := amqpMethod(f)
		c := d.channels[number]
		switch {
		case method == channelOpen || c == nil && method != 0:
			if d.channels == nil {
				d.channels = map[uint16]*amqpChannel{}
			}
			d.channels[number] = &amqpChannel{}
		case method == confirmSelect:
			c.confirms = true
		case method == basicPublish && c.confirms:
			c.tag++
			c.asked = append(c.asked, amqpAsked{c.tag, bytes.Clone(f[:min(len(f), mostAsked)])})
		}
		return false
	})
}

func (d *amqpDialogue) reply(b []byte, loses func(request, reply []byte) bool) ([]byte, bool) {
	return d.out.walk(b, amqpSize, func(f []byte) bool {
		number, method := amqpMethod(f)
		c := d.channels[number]
		if c == nil || len(f) < 20 || method != basicAck && method != basicNack {
			return false
		}
		tag, multiple := binary.BigEndian.Uint64(f[11:]), f[19]&1 != 0
		lost := false
		c.asked = slices.DeleteFunc(c.asked, func(a amqpAsked) bool {
			confirmed := a.tag == tag || multiple && (a.tag <= tag || tag == 0)
			lost = lost || confirmed && loses(a.frame, f)
			return confirmed
		})
		return lost
	})
}
