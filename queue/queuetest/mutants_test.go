package queuetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"queuelab/queue"
	"queuelab/queue/queuetest"
)

// brokenQueues are the memory queue with one thing broken.
func brokenQueues() []mutant {
	m := func(name, caught, says string, make func() *tampered) mutant {
		return mutant{name, func() queuetest.Harness { return tamper(make) }, caught, says}
	}
	return []mutant{
		m("one message in a thousand is dropped", "EveryMessageArrivesExactlyOnce", "lost", func() *tampered {
			drop := everyThousandth()
			return &tampered{publish: func(p queue.Publisher, ctx context.Context, ms []queue.Message) error {
				return p.Publish(ctx, slices.DeleteFunc(slices.Clone(ms), func(queue.Message) bool { return drop() })...)
			}}
		}),
		m("one message in a thousand is delivered twice", "EveryMessageArrivesExactlyOnce", "twice", func() *tampered {
			double := everyThousandth()
			return &tampered{publish: func(p queue.Publisher, ctx context.Context, ms []queue.Message) error {
				for _, m := range ms {
					if double() {
						ms = append(slices.Clone(ms), m)
					}
				}
				return p.Publish(ctx, ms...)
			}}
		}),
		m("the ack is deleted", "AnAckedMessageDoesNotComeBack", "none", func() *tampered {
			return &tampered{ack: func(_ *tamperedConsumer, _ context.Context, ds []*queue.Delivery) error {
				return queue.Settle(ds, func([]*queue.Delivery) error { return nil })
			}}
		}),
		m("the ack comes early", "AnUnsettledMessageComesBackAfterClose", "lost", func() *tampered {
			return &tampered{
				receive: func(c *tamperedConsumer, ctx context.Context, max int) ([]*queue.Delivery, error) {
					ds, err := c.Consumer.Receive(ctx, max)
					out := make([]*queue.Delivery, len(ds))
					for i, d := range ds {
						out[i] = queue.NewDelivery(d.Message, d.Attempt, nil)
					}
					c.Consumer.Ack(context.Background(), ds...)
					return out, err
				},
				ack: func(_ *tamperedConsumer, _ context.Context, ds []*queue.Delivery) error {
					return queue.Settle(ds, func([]*queue.Delivery) error { return nil })
				},
			}
		}),
		m("a nack drops", "ANackedMessageComesAgain", "", func() *tampered {
			return &tampered{nack: func(c *tamperedConsumer, ctx context.Context, ds []*queue.Delivery) error {
				return c.Consumer.Ack(ctx, ds...)
			}}
		}),
		m("a nack does nothing until the consumer closes", "ANackedMessageComesAgain", "", func() *tampered {
			return &tampered{nack: func(_ *tamperedConsumer, _ context.Context, ds []*queue.Delivery) error {
				return queue.Settle(ds, func([]*queue.Delivery) error { return nil })
			}}
		}),
		m("close drops what is in flight", "CloseGivesBackWhatIsInFlight", "lost", func() *tampered {
			return &tampered{close: func(c *tamperedConsumer) error {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.Consumer.Ack(context.Background(), c.held...)
				return c.Consumer.Close()
			}}
		}),
		m("settling twice is nil", "SettlingTwiceIsErrSettled", "want ErrSettled", func() *tampered {
			return &tampered{ack: func(c *tamperedConsumer, ctx context.Context, ds []*queue.Delivery) error {
				if err := c.Consumer.Ack(ctx, ds...); !errors.Is(err, queue.ErrSettled) {
					return err
				}
				return nil
			}}
		}),
		m("a mixed batch settles nothing", "AMixedBatchSettlesWhatIsLeft", "", func() *tampered {
			return &tampered{ack: func(c *tamperedConsumer, ctx context.Context, ds []*queue.Delivery) error {
				if slices.ContainsFunc(ds, (*queue.Delivery).Settled) {
					return queue.ErrSettled
				}
				return c.Consumer.Ack(ctx, ds...)
			}}
		}),
		m("an ack settles earlier deliveries too", "AckingALaterDeliverySettlesNoEarlierOne", "", func() *tampered {
			return &tampered{ack: func(c *tamperedConsumer, ctx context.Context, ds []*queue.Delivery) error {
				err := c.Consumer.Ack(ctx, ds...)
				c.mu.Lock()
				defer c.mu.Unlock()
				if i := slices.Index(c.held, ds[len(ds)-1]); i > 0 {
					c.Consumer.Ack(ctx, c.held[:i]...)
				}
				return err
			}}
		}),
		m("an ack after close is nil", "AnAckAfterCloseIsAnError", "", func() *tampered {
			return &tampered{ack: func(c *tamperedConsumer, ctx context.Context, ds []*queue.Delivery) error {
				if c.closed.Load() {
					return nil
				}
				return c.Consumer.Ack(ctx, ds...)
			}}
		}),
		m("an ack hangs", "ReceiveReturnsAtMostMax", "the case hangs", func() *tampered {
			return &tampered{ack: func(c *tamperedConsumer, _ context.Context, ds []*queue.Delivery) error {
				for !c.closed.Load() {
					time.Sleep(10 * time.Millisecond)
				}
				return queue.ErrClosed
			}}
		}),
		m("receive does not notice close", "CloseUnblocksReceive", "still blocks", func() *tampered {
			return &tampered{receive: func(c *tamperedConsumer, ctx context.Context, max int) ([]*queue.Delivery, error) {
				ds, err := c.Consumer.Receive(ctx, max)
				if errors.Is(err, queue.ErrClosed) {
					<-ctx.Done()
				}
				return ds, err
			}}
		}),
		m("receive does not notice the end of its context", "ACancelledReceiveSwallowsNothing", "still blocks", func() *tampered {
			return &tampered{receive: func(c *tamperedConsumer, ctx context.Context, max int) ([]*queue.Delivery, error) {
				return c.Consumer.Receive(context.WithoutCancel(ctx), max)
			}}
		}),
		m("a cancelled receive swallows the next message", "ACancelledReceiveSwallowsNothing", "lost", func() *tampered {
			return &tampered{receive: swallow}
		}),
		m("a context error is wrapped", "AnEndedContextIsReturnedAsItIs", "as it is", func() *tampered {
			return &tampered{receive: func(c *tamperedConsumer, ctx context.Context, max int) ([]*queue.Delivery, error) {
				ds, err := c.Consumer.Receive(ctx, max)
				if err != nil {
					err = fmt.Errorf("receive: %w", err)
				}
				return ds, err
			}}
		}),
		m("receive returns more than max", "ReceiveReturnsAtMostMax", "with max", func() *tampered {
			return &tampered{receive: func(c *tamperedConsumer, ctx context.Context, max int) ([]*queue.Delivery, error) {
				return c.Consumer.Receive(ctx, max+1)
			}}
		}),
		m("receive waits for nothing at all", "AMaxBelowOneIsAnError", "want an error at once", func() *tampered {
			return &tampered{receive: func(c *tamperedConsumer, ctx context.Context, max int) ([]*queue.Delivery, error) {
				if max < 1 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return c.Consumer.Receive(ctx, max)
			}}
		}),
		m("receive returns nothing without an error", "ReceiveReturnsAtMostMax", "got 0 deliveries", func() *tampered {
			n := 0
			return &tampered{receive: func(c *tamperedConsumer, ctx context.Context, max int) ([]*queue.Delivery, error) {
				if n++; n%2 == 0 {
					return nil, nil
				}
				return c.Consumer.Receive(ctx, max)
			}}
		}),
		m("headers are dropped", "MessagesArriveUnchanged", "Headers", func() *tampered {
			return change(func(m *queue.Message) { m.Headers = nil })
		}),
		m("the body must be text", "MessagesArriveUnchanged", "Body", func() *tampered {
			return change(func(m *queue.Message) { m.Body = []byte(strings.ToValidUTF8(string(m.Body), "?")) })
		}),
		m("the key is dropped", "MessagesArriveUnchanged", "Key", func() *tampered {
			return change(func(m *queue.Message) { m.Key = "" })
		}),
		m("a large body is cut off", "ALargeBodyArrivesOrIsRejected", "changed on its way", func() *tampered {
			return change(func(m *queue.Message) { m.Body = m.Body[:min(len(m.Body), 1<<16)] })
		}),
		m("an ended context still publishes", "AnEndedContextIsReturnedAsItIs", "", func() *tampered {
			return &tampered{publish: func(p queue.Publisher, ctx context.Context, ms []queue.Message) error {
				p.Publish(context.WithoutCancel(ctx), ms...)
				return ctx.Err()
			}}
		}),
		m("a publish after close is unknown", "AfterCloseEverythingIsErrClosed", "ErrClosed", func() *tampered {
			return &tampered{publish: func(p queue.Publisher, ctx context.Context, ms []queue.Message) error {
				if err := p.Publish(ctx, ms...); err != nil && ctx.Err() == nil {
					return errLost
				}
				return ctx.Err()
			}}
		}),
		m("a rejected message is nil", "AFullQueueBlocksOrRejects", "lost", func() *tampered {
			first := true
			return &tampered{settings: "full=reject", publish: func(p queue.Publisher, ctx context.Context, ms []queue.Message) error {
				if err := p.Publish(ctx, ms...); !errors.Is(err, queue.ErrRejected) || !first {
					return err
				}
				first = false
				return nil
			}}
		}),
		m("a rejected message is in the queue", "AFullQueueBlocksOrRejects", "though it was rejected", func() *tampered {
			n := 0
			return &tampered{publish: func(p queue.Publisher, ctx context.Context, ms []queue.Message) error {
				err := p.Publish(ctx, ms...)
				if n += len(ms); n > 500 && n < 700 && err == nil {
					return queue.Reject(errLost)
				}
				return err
			}}
		}),
		m("an unsupported nack settles", "NackIsUnsupportedAndSettlesNothing", "is settled", func() *tampered {
			return &tampered{
				caps: func(c *queue.Capabilities) { c.Nack = false },
				nack: func(c *tamperedConsumer, ctx context.Context, ds []*queue.Delivery) error {
					queue.Settle(ds, func([]*queue.Delivery) error { return nil })
					return queue.ErrUnsupported
				}}
		}),
		m("delete removes nothing", "DeleteRemovesEverything", "", func() *tampered {
			return &tampered{delete: func(context.Context) error { return nil }}
		}),
		m("the backlog forgets what is in flight", "BacklogCountsWhatIsThere", "", func() *tampered {
			return &tampered{backlog: func(b queue.Backlog) queue.Backlog { b.InFlight = 0; return b }}
		}),
		m("attempts stay at one", "AttemptsAreCountedAsClaimed", "", func() *tampered {
			return redo(func(d *queue.Delivery) *queue.Delivery { return queue.NewDelivery(d.Message, 1, nil) })
		}),
		m("capabilities change while it is open", "CapabilitiesDoNotContradictEachOther", "not constant", func() *tampered {
			n := 0
			return &tampered{caps: func(c *queue.Capabilities) { n++; c.AckConfirmed = n%2 == 0 }}
		}),
		m("it claims to be bounded and grows", "AFullQueueBlocksOrRejects", "Bounded is claimed", func() *tampered {
			return &tampered{settings: "capacity=1000000"}
		}),
		m("it does not admit that it is bounded", "AnUnboundedQueueGrows", "", func() *tampered {
			return &tampered{caps: func(c *queue.Capabilities) { c.Bounded = false }}
		}),
		m("it claims to drop its oldest and grows", "AFullQueueDropsItsOldest", "left in a queue that drops", func() *tampered {
			return &tampered{settings: "capacity=1000000", caps: func(c *queue.Capabilities) { c.Bounded, c.DropsOldest = false, true }}
		}),
		m("it drops its newest", "AFullQueueDropsItsOldest", "not the newest", func() *tampered {
			return &tampered{
				settings: "full=reject",
				caps:     func(c *queue.Capabilities) { c.Bounded, c.DropsOldest = false, true },
				publish: func(p queue.Publisher, ctx context.Context, ms []queue.Message) error {
					if err := p.Publish(ctx, ms...); !errors.Is(err, queue.ErrRejected) {
						return err
					}
					return nil
				},
			}
		}),
	}
}

// brokenBrokers are brokers whose flaw shows on more than one handle, or when
// the broker is killed.
func brokenBrokers() []mutant {
	m := func(name, caught, says, of string, f flaw) mutant {
		return mutant{name, func() queuetest.Harness {
			s := shapes()[of]
			s.flaw = f
			return newBroker(s).harness()
		}, caught, says}
	}
	return []mutant{
		m("receive spins while the broker is away", "OpenHandlesWorkAgainAfterACrash", "spins", "classic", spins),
		m("a consumer stays dead after a crash", "OpenHandlesWorkAgainAfterACrash", "gets nothing", "classic", staysDead),
		m("a publisher stays dead after a crash", "OpenHandlesWorkAgainAfterACrash", "an open publisher", "classic", publisherStaysDead),
		m("a crash brings acked messages back", "SettledStaysSettledOverACrash", "its ack was confirmed", "log", forgetsAcksInACrash),
		m("a crash loses what consumers hold", "SettledStaysSettledOverACrash", "lost", "log", losesHeldInACrash),
		m("keys come out of order", "OneKeyKeepsItsOrder", "another order", "classic", unordered),
		m("queues mix", "QueuesDoNotMix", "", "streams", mixesQueues),
		m("a consumer opens before it is subscribed", "AConsumerSeesWhatIsPublishedAfterItOpened", "lost", "pubsub", subscribesLate),
		m("deleting a broker's queue removes nothing", "DeleteRemovesEverything", "", "list", deletesNothing),
		m("unknown parameters are ignored", "WrongParametersAreRefused", "unknown parameter", "list", takesAnyParameter),
	}
}

// falseClaims are honest brokers whose capabilities say too much or too little.
func falseClaims() []mutant {
	m := func(of, name, caught string, claim func(*queue.Capabilities)) mutant {
		return mutant{of + " claims " + name, func() queuetest.Harness {
			s := shapes()[of]
			s.claim = claim
			return newBroker(s).harness()
		}, caught, ""}
	}
	return []mutant{
		m("list", "at least once", "AnUnsettledMessageComesBackAfterClose", func(c *queue.Capabilities) { c.Guarantee = queue.AtLeastOnce }),
		m("streams", "at most once", "AnUnsettledMessageIsGoneAfterClose", func(c *queue.Capabilities) { c.Guarantee = queue.AtMostOnce }),
		m("list", "durable", "AcceptedMessagesSurviveACrash", func(c *queue.Capabilities) { c.Durable, c.Confirm = true, queue.ConfirmOS }),
		m("streams", "not durable", "ACrashLosesWhatOnlyMemoryHeld", func(c *queue.Capabilities) { c.Durable, c.Confirm = false, queue.ConfirmMemory }),
		m("volatile", "a confirm from disk", "CapabilitiesDoNotContradictEachOther", func(c *queue.Capabilities) { c.Confirm = queue.ConfirmDisk }),
		m("pubsub", "a confirm", "PublishWaitsForTheConfirmItClaims", func(c *queue.Capabilities) { c.Confirm = queue.ConfirmMemory }),
		m("pubsub", "stored", "StoredMessagesWaitForAConsumer", func(c *queue.Capabilities) { c.Stored = true }),
		m("list", "not stored", "UnstoredMessagesAreGoneWithoutAConsumer", func(c *queue.Capabilities) { c.Stored = false }),
		m("streams", "broadcast", "EveryConsumerGetsEveryMessage", func(c *queue.Capabilities) { c.Broadcast = true }),
		m("pubsub", "competing", "ConsumersCompete", func(c *queue.Capabilities) { c.Broadcast = false }),
		m("pubsub", "to skip", "WhatComesWhileNobodyReceivesIsSkipped", func(c *queue.Capabilities) { c.Skips = true }),
		m("pubsub", "routing", "ABoundHandleGetsItsKeyOnly", func(c *queue.Capabilities) { c.Routing = true }),
		m("streams", "replay", "CapabilitiesDoNotContradictEachOther", func(c *queue.Capabilities) { c.Replay = true }),
		m("classic", "groups", "EveryGroupGetsEveryMessageOnce", func(c *queue.Capabilities) { c.Groups = true }),
		m("log", "no groups", "GroupsAreRefusedOrMeanNothing", func(c *queue.Capabilities) { c.Groups = false }),
		m("classic", "not shared", "ASecondHandleIsAnotherQueue", func(c *queue.Capabilities) { c.Shared = false }),
		m("log", "nack", "ANackedMessageComesAgain", func(c *queue.Capabilities) { c.Nack = true }),
		m("classic", "no nack", "NackIsUnsupportedAndSettlesNothing", func(c *queue.Capabilities) { c.Nack = false }),
		m("classic", "counted attempts", "AttemptsAreCountedAsClaimed", func(c *queue.Capabilities) { c.Attempts = queue.CountedByBroker }),
		m("streams", "flagged attempts", "AttemptsAreCountedAsClaimed", func(c *queue.Capabilities) { c.Attempts = queue.FlaggedByBroker }),
		m("streams", "no attempts", "AttemptsAreCountedAsClaimed", func(c *queue.Capabilities) { c.Attempts = queue.NotCounted }),
		m("classic", "confirmed acks", "AckWaitsForTheAnswerItClaims", func(c *queue.Capabilities) { c.AckConfirmed = true }),
		m("log", "unconfirmed acks", "AckWaitsForTheAnswerItClaims", func(c *queue.Capabilities) { c.AckConfirmed = false }),
		m("volatile", "fenced leases", "ALateSettleIsErrLeaseLostWhereClaimed", func(c *queue.Capabilities) { c.LeaseFenced = true }),
		m("streams", "unfenced leases", "ALateSettleIsErrLeaseLostWhereClaimed", func(c *queue.Capabilities) { c.LeaseFenced = false }),
		m("classic", "fenced leases", "ALateSettleAfterACrashIsErrLeaseLost", func(c *queue.Capabilities) { c.LeaseFenced = true }),
	}
}
