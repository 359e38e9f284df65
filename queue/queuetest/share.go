package queuetest

import "queuelab/queue"

// shareCases are about who gets a message: consumers, groups and handles.
func shareCases() []testCase {
	return []testCase{
		{name: "ConsumersCompete", when: not(broadcast), run: compete},
		{name: "EveryConsumerGetsEveryMessage", when: broadcast, run: everyConsumer},
		{name: "EveryGroupGetsEveryMessageOnce", when: groups, run: groupsGetAll},
		{name: "GroupsAreRefusedOrMeanNothing", when: not(groups), needs: openErr, run: noGroups},
		{name: "ASecondHandleIsTheSameQueue", when: shared, run: secondHandle},
		{name: "ASecondHandleIsAnotherQueue", when: not(shared), run: separateHandle},
	}
}

func broadcast(c queue.Capabilities) bool { return c.Broadcast }
func groups(c queue.Capabilities) bool    { return c.Groups }
func shared(c queue.Capabilities) bool    { return c.Shared }

func compete(e *env) {
	q := e.open()
	a, p := e.both(q)
	b := e.consumer(q)
	for range 4 {
		ms := e.msgs(25, "")
		e.publish(p, ms...)
		e.collect(ms, a, b)
	}
	e.nothing(a, e.quiet)
	e.nothing(b, e.quiet)
}

func everyConsumer(e *env) {
	q := e.open()
	a, p := e.both(q)
	b := e.consumer(q)
	ms := e.msgs(25, "k")
	e.publish(p, ms...)
	for _, c := range []queue.Consumer{a, b} {
		e.collect(ms, c)
		e.nothing(c, e.quiet)
	}
}

func groupsGetAll(e *env) {
	one, two := e.open("group=one"), e.open("group=two")
	a, b := e.consumer(one), e.consumer(one)
	other := e.consumer(two)
	p := e.publisher(one)
	ms := e.msgs(50, "")
	e.publish(p, ms...)
	e.collect(ms, a, b)
	e.collect(ms, other)
	for _, c := range []queue.Consumer{a, b, other} {
		e.nothing(c, e.quiet)
	}
	// An ack in one group is none in the other, also for a new consumer.
	e.close("consumer", other)
	e.nothing(e.consumer(two), e.h.Redelivery+e.quiet)
}

func noGroups(e *env) {
	if err := e.h.OpenErr("group=one"); err != nil {
		return // refused, which is the honest answer
	}
	one := e.open("group=one")
	if e.caps.Broadcast { // consumers of one group would share the messages
		a, b := e.consumer(one), e.consumer(one)
		ms := e.msgs(25, "k")
		e.publish(e.publisher(one), ms...)
		e.collect(ms, a)
		e.collect(ms, b)
		return
	}
	cs := []queue.Consumer{e.consumer(one)}
	if e.caps.Shared {
		cs = append(cs, e.consumer(e.open("group=two")))
	}
	ms := e.msgs(25, "")
	e.publish(e.publisher(one), ms...)
	e.collect(ms, cs...)
	for _, c := range cs {
		e.nothing(c, e.quiet)
	}
}

func secondHandle(e *env) {
	first, second := e.open(), e.open()
	c, p := e.consumer(second), e.publisher(first)
	ms := e.msgs(5, "k")
	e.publish(p, ms...)
	e.collect(ms, c)
	if !e.caps.Broadcast {
		e.close("consumer", c)
	}
	e.close("queue", second) // which must not disturb the first
	ms = e.msgs(5, "k")
	mine := e.consumer(first)
	e.publish(p, ms...)
	e.collectAgain(ms, mine)
	e.nothing(mine, e.quiet)
}

func separateHandle(e *env) {
	first, second := e.open(), e.open()
	a, p := e.both(first)
	b := e.consumer(second)
	ms := e.msgs(5, "k")
	e.publish(p, ms...)
	e.nothing(b, e.quiet)
	e.collect(ms, a)
}
