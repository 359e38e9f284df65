package report

import (
	"maps"
	"slices"

	"queuelab/bench/trial"
)

// facts are a cell's numbers in words, for people who do not read JSON.
func facts(c *viewCell) []meaning {
	n := c.count
	out := []meaning{
		{say("trials"), say("{0} valid of {1}, seed {2}", n("valid", int64(c.Valid)), n("trials", int64(c.Trials)), fig(asInteger, c.Seed, c.path("seed")))},
		{say("messages"), say("sent {0}, accepted {1}, rejected {2}, unknown {3}, unconfirmed {4}", n("sent", c.Sent), n("accepted", c.Accepted), n("rejected", c.Rejected), n("unknown", c.Unknown), n("unconfirmed", c.Unconfirmed))},
		{say("outcome"), say("lost {0}, recovered {1}, again {2}, effect duplicates {3}, producer duplicates {4}, reordered {5}, stranded {6}, dead-lettered {7}, dropped by a limit {8}, phantom {9}, rejected yet delivered {10}",
			n("lost", c.Lost), n("recovered", c.Recovered), n("redelivered", c.Redelivered), n("effectDuplicates", c.EffectDuplicates), n("producerDuplicates", c.ProducerDuplicates), n("reordered", c.Reordered),
			n("stranded", c.Stranded), n("deadLettered", c.DeadLettered), n("policyDropped", c.PolicyDropped), n("phantom", c.Phantom), n("rejectedDelivered", c.RejectedDelivered))},
		{say("shape"), say("consumer processes {0}, handlers in each {1}, prefetch {2}, payload {3} B, backlog at the fault {4}", n("consumers", int64(c.Consumers)), n("concurrency", int64(c.Concurrency)),
			n("prefetch", int64(c.Prefetch)), n("payloadBytes", int64(c.PayloadBytes)), n("backlogAtFault", c.BacklogAtFault))},
	}
	if l := c.Load; l != nil {
		out = append(out, meaning{say("load"), say("{0}; payload of {1}; keys {2}; producers {3}; messages in a publish {4}", orDash(l.Shape), orDash(l.Content), orDash(l.Keys),
			n("load.producers", int64(l.Producers)), n("load.batch", int64(l.Batch)))})
	}
	if t := lossText(c); !t.Empty() && c.Test == trial.TestCrash && measured(c.Cell) {
		out = append(out, meaning{say("by the crash"), t})
	}
	if r := c.RecoveryMillis; r != nil {
		out = append(out, meaning{say("without service"), say("p50 {0}, longest {1}", fig(asMillis, r.P50, c.path("recoveryMillis.p50")), fig(asMillis, r.Max, c.path("recoveryMillis.max")))})
	}
	if l := c.LatencyMicros; l != nil {
		out = append(out, latencyFacts(c, l)...)
	}
	if k := c.Cost; k != nil {
		out = append(out, meaning{say("cost per million"), costText(c, k)})
	}
	if s := c.Sale; s != nil {
		out = append(out, meaning{say("sale"), say("{0} buyers for {1} units: sold {2}, oversold {3}, undersold {4}, double {5}, waiting {6}, lost orders {7}",
			n("sale.buyers", int64(s.Buyers)), n("sale.stock", int64(s.Stock)), n("sale.sold", int64(s.Sold)), n("sale.oversold", int64(s.Oversold)), n("sale.undersold", int64(s.Undersold)),
			n("sale.double", int64(s.Double)), n("sale.waiting", int64(s.Waiting)), n("sale.lostOrders", int64(s.LostOrders)))})
		if s.AnswerMicros != nil {
			out = append(out, meaning{say("click to answer"), latencyText(c, "sale.answerMicros", *s.AnswerMicros)})
		}
		if s.CommittedMicros != nil {
			out = append(out, meaning{say("click to row committed"), latencyText(c, "sale.committedMicros", *s.CommittedMicros)})
		}
	}
	return append(out, meaning{say("took"), fig(asMillis, c.WallMillis, c.path("wallMillis")).text()})
}

func latencyFacts(c *viewCell, l *trial.Latency) []meaning {
	out := []meaning{{say("response"), latencyText(c, "latencyMicros.publish", l.Publish)}, {say("end to end"), latencyText(c, "latencyMicros.endToEnd", l.EndToEnd)}}
	for _, stage := range []struct {
		term text
		path string
		p    *trial.Percentiles
	}{{say("lateness"), "lateness", l.Lateness}, {say("effect committed"), "effect", l.Effect}, {say("acked"), "acked", l.Acked}} {
		if stage.p != nil {
			out = append(out, meaning{stage.term, latencyText(c, "latencyMicros."+stage.path, *stage.p)})
		}
	}
	if f := l.FromSend; f != nil {
		out = append(out, meaning{say("uncorrected response"), latencyText(c, "latencyMicros.fromSend.publish", f.Publish)},
			meaning{say("uncorrected end to end"), latencyText(c, "latencyMicros.fromSend.endToEnd", f.EndToEnd)})
	}
	return out
}

func latencyText(c *viewCell, path string, p trial.Percentiles) text {
	var parts []text
	for _, q := range percentiles(p) {
		parts = append(parts, concat(raw(q.Name+" "), quantile(q, c.path(path))))
	}
	return join(comma(), append(parts, concat(raw("n "), c.count(path+".n", p.N).text()))...)
}

func costText(c *viewCell, k *trial.Cost) text {
	client := say("client {0} of CPU, {1} of memory", fig(asSeconds, k.ClientCPUSeconds, c.path("cost.clientCpuSeconds")), fig(asBytes, k.ClientMemoryBytes, c.path("cost.clientMemoryBytes")))
	if !k.BrokerKnown {
		return client
	}
	return join(semicolon(), client, say("broker {0} of CPU, {1} of memory, {2} of disk", fig(asSeconds, k.BrokerCPUSeconds, c.path("cost.brokerCpuSeconds")),
		fig(asBytes, k.BrokerMemoryBytes, c.path("cost.brokerMemoryBytes")), fig(asBytes, k.BrokerDiskBytes, c.path("cost.brokerDiskBytes"))))
}

// settings lists a cell's effective settings by name.
func settings(c *viewCell) []meaning {
	var out []meaning
	for _, k := range slices.Sorted(maps.Keys(c.EffectiveSettings)) {
		out = append(out, meaning{quote(k), quote(c.EffectiveSettings[k])})
	}
	return out
}
