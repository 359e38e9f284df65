// Package learn runs lessons: a question about queues, an experiment on the real
// broker that answers it, and the words that its figures allow. What a lesson says
// is checked against what it measured each time, so that one whose broker behaves
// otherwise fails.
//
// The lessons themselves are in package lessons, a file each.
package learn

import "time"

// Text is a text in both languages. {name} in it stands for the figure of that
// name, as it was measured in this run.
type Text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// Lesson is one question and the experiment that answers it.
type Lesson struct {
	Number   int
	Name     string // in links and on the command line: words and hyphens
	Topic    Topic
	Question Text
	// Choices are what a reader may predict. Right is the index of the one that
	// the measurement must lead to: its conditions hold, and those of no other.
	Choices []Choice
	Right   int
	Needs   []Need
	Takes   time.Duration // about, on two cores, with the brokers up
	// Try is the experiment. It takes its steps through the Stand, and leaves
	// figures there; a step that fails ends it.
	Try func(s *Stand)
	// Expect is what the figures must be for the words to be true, beside the
	// conditions of the choices.
	Expect  Conditions
	Why     Text // at most five sentences
	Say     Text // in an interview: at most three
	Further []Link
}

// Choice is an answer that one might predict, with the figures that would prove
// it right.
type Choice struct {
	Text
	If Conditions
}

// Topic is a part of the list.
type Topic int

// The topics, in the order in which they are listed.
const (
	Basics Topic = iota
	Redis
	RabbitMQ
	Kafka
	Consuming
	Admission
	Orders
	Running
	Criteria
)

// Title is the topic in words.
func (t Topic) Title() Text {
	return [...]Text{
		{"What a queue promises", "队列承诺了什么"},
		{"Redis as a queue", "用 Redis 做队列"},
		{"RabbitMQ", "RabbitMQ"},
		{"Kafka", "Kafka"},
		{"Consuming: once, in order, or not at all", "消费：幂等、顺序与毒消息"},
		{"Admission: stock and buyers", "准入：库存与一人一单"},
		{"The order's life", "订单的一生"},
		{"Running it", "运行与容量"},
		{"Nine criteria to compare queues by", "比较队列的九个维度"},
	}[t]
}

// Need is a broker that a lesson needs.
type Need struct {
	Kind    string // as in broker.Kinds
	Setting string // a settings file of that kind; "" is the kind's default
	// Own is set where the lesson kills, stops or reconfigures it: it gets one that
	// nobody else uses, and none that was given by URL.
	Own bool
	// Storage puts its files where power can be cut: see broker.Options.
	Storage bool
}

// Link is where to look further.
type Link struct {
	Text
	// URL of a source; "" where Cell is set.
	URL string `json:",omitempty"`
	// Cell of a report, as setting and fault: "redis-list/aof-always consumer-kill-mid-handle".
	Cell string `json:",omitempty"`
}
