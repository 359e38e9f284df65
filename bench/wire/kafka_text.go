package wire

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// told is what a request or an answer says.
type told struct {
	subject, id, text string
	noise, wrong      bool
}

func (k *told) say(format string, args ...any) {
	if len(k.text) < 4*mostText {
		k.text += " " + fmt.Sprintf(format, args...)
	}
}

// about says of which topic and partition; the first of them is what all is about.
func (k *told) about(topic string, partition int32, offset int64) {
	if k.subject == "" {
		k.subject = topic
		if offset >= 0 {
			k.id = fmt.Sprintf("%d/%d", partition, offset)
		}
	}
	k.say("topic=%s partition=%d", word(topic), partition)
}

func (k *told) fault(code int16) {
	k.wrong = k.wrong || code != 0
	k.say("error=%s", kafkaError(code))
}

func word(s string) string { return text([]byte(s)).word(100) }

func kafkaError(code int16) string {
	err := kerr.TypedErrorForCode(code)
	switch {
	case err == nil:
		return "none"
	case err.Code != code:
		return fmt.Sprint(code)
	}
	return err.Message
}

func (t *kafkaTalk) tellRequest(req kmsg.Request) (k told) {
	switch r := req.(type) {
	case *kmsg.ProduceRequest:
		for _, topic := range r.Topics {
			for _, p := range topic.Partitions {
				k.about(t.topic(topic.Topic, topic.TopicID), p.Partition, -1)
				rs := readRecords(p.Records)
				rs.base = -1 // the broker gives them their offsets
				k.say("acks=%d %s", r.Acks, rs.show())
			}
		}
	case *kmsg.FetchRequest:
		for _, topic := range r.Topics {
			for _, p := range topic.Partitions {
				k.about(t.topic(topic.Topic, topic.TopicID), p.Partition, p.FetchOffset)
				k.say("offset=%d", p.FetchOffset)
			}
		}
		if len(r.Topics) == 0 {
			k.say("as before, session %d", r.SessionID)
		}
		k.noise = len(r.Topics) == 0 || k.text == t.fetched
		if t.fetched = k.text; len(t.fetched) > 4*mostText {
			t.fetched = ""
		}
		k.say("max-wait=%dms", r.MaxWaitMillis)
	case *kmsg.OffsetCommitRequest:
		k.say("group=%s generation=%d", word(r.Group), r.Generation)
		for _, topic := range r.Topics {
			for _, p := range topic.Partitions {
				k.about(t.topic(topic.Topic, topic.TopicID), p.Partition, p.Offset)
				k.say("offset=%d", p.Offset)
			}
		}
	case *kmsg.OffsetFetchRequest:
		if r.Group != "" {
			k.say("group=%s", word(r.Group))
		}
		for _, topic := range r.Topics {
			k.subject = topic.Topic
			k.say("topic=%s partitions=%v", word(topic.Topic), topic.Partitions)
		}
		for _, g := range r.Groups {
			k.say("group=%s", word(g.Group))
			for _, topic := range g.Topics {
				k.subject = t.topic(topic.Topic, topic.TopicID)
				k.say("topic=%s partitions=%v", word(k.subject), topic.Partitions)
			}
		}
	case *kmsg.JoinGroupRequest:
		k.subject = r.Group
		k.say("group=%s member=%s session=%dms", word(r.Group), word(r.MemberID), r.SessionTimeoutMillis)
		for _, p := range r.Protocols {
			k.say("protocol=%s", word(p.Name))
		}
	case *kmsg.SyncGroupRequest:
		k.subject = r.Group
		k.say("group=%s generation=%d member=%s", word(r.Group), r.Generation, word(r.MemberID))
		for _, a := range r.GroupAssignment {
			k.say("%s gets %s", word(a.MemberID), assignment(a.MemberAssignment))
		}
	case *kmsg.HeartbeatRequest:
		k.subject = r.Group
		k.say("group=%s generation=%d member=%s", word(r.Group), r.Generation, word(r.MemberID))
	case *kmsg.LeaveGroupRequest:
		k.subject = r.Group
		k.say("group=%s", word(r.Group))
		if r.MemberID != "" {
			k.say("member=%s", word(r.MemberID))
		}
		for _, m := range r.Members {
			k.say("member=%s", word(m.MemberID))
		}
	case *kmsg.ListOffsetsRequest:
		for _, topic := range r.Topics {
			for _, p := range topic.Partitions {
				k.about(topic.Topic, p.Partition, -1)
				switch p.Timestamp {
				case -1:
					k.say("latest")
				case -2:
					k.say("earliest")
				default:
					k.say("timestamp=%d", p.Timestamp)
				}
			}
		}
	case *kmsg.FindCoordinatorRequest:
		k.subject = r.CoordinatorKey
		for _, key := range append(r.CoordinatorKeys, r.CoordinatorKey) {
			if key != "" {
				k.subject = key
				k.say("of=%s", word(key))
			}
		}
	case *kmsg.CreateTopicsRequest:
		for _, topic := range r.Topics {
			k.subject = topic.Topic
			k.say("topic=%s partitions=%d replicas=%d", word(topic.Topic), topic.NumPartitions, topic.ReplicationFactor)
			for _, c := range topic.Configs {
				if c.Value != nil {
					k.say("%s=%s", word(c.Name), word(*c.Value))
				}
			}
		}
	case *kmsg.DeleteTopicsRequest:
		for _, name := range r.TopicNames {
			k.subject = name
			k.say("topic=%s", word(name))
		}
		for _, topic := range r.Topics {
			name := ""
			if topic.Topic != nil {
				name = *topic.Topic
			}
			k.subject = t.topic(name, topic.TopicID)
			k.say("topic=%s", word(k.subject))
		}
	case *kmsg.SASLAuthenticateRequest:
		k.say(hidden)
	}
	return k
}

func (t *kafkaTalk) tellAnswer(resp kmsg.Response) (k told) {
	switch r := resp.(type) {
	case *kmsg.ProduceResponse:
		for _, topic := range r.Topics {
			for _, p := range topic.Partitions {
				k.about(t.topic(topic.Topic, topic.TopicID), p.Partition, p.BaseOffset)
				k.say("offset=%d", p.BaseOffset)
				k.fault(p.ErrorCode)
			}
		}
	case *kmsg.FetchResponse:
		t.tellFetched(&k, r)
	case *kmsg.OffsetCommitResponse:
		for _, topic := range r.Topics {
			for _, p := range topic.Partitions {
				k.about(t.topic(topic.Topic, topic.TopicID), p.Partition, -1)
				k.fault(p.ErrorCode)
			}
		}
	case *kmsg.OffsetFetchResponse:
		for _, topic := range r.Topics {
			for _, p := range topic.Partitions {
				k.about(topic.Topic, p.Partition, p.Offset)
				k.say("offset=%d", p.Offset)
				k.fault(p.ErrorCode)
			}
		}
		for _, g := range r.Groups {
			k.say("group=%s", word(g.Group))
			for _, topic := range g.Topics {
				for _, p := range topic.Partitions {
					k.about(t.topic(topic.Topic, topic.TopicID), p.Partition, p.Offset)
					k.say("offset=%d", p.Offset)
					k.fault(p.ErrorCode)
				}
			}
			k.fault(g.ErrorCode)
		}
	case *kmsg.JoinGroupResponse:
		k.say("generation=%d member=%s leader=%s", r.Generation, word(r.MemberID), word(r.LeaderID))
		if len(r.Members) > 0 {
			k.say("%d members", len(r.Members))
		}
		k.fault(r.ErrorCode)
	case *kmsg.SyncGroupResponse:
		k.say("gets %s", assignment(r.MemberAssignment))
		k.fault(r.ErrorCode)
	case *kmsg.HeartbeatResponse:
		k.fault(r.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		k.fault(r.ErrorCode)
	case *kmsg.ListOffsetsResponse:
		for _, topic := range r.Topics {
			for _, p := range topic.Partitions {
				offset := p.Offset
				if r.Version == 0 {
					offset = -1
				}
				k.about(topic.Topic, p.Partition, offset)
				if r.Version == 0 {
					k.say("offsets=%v", p.OldStyleOffsets)
				} else {
					k.say("offset=%d", p.Offset)
				}
				k.fault(p.ErrorCode)
			}
		}
	case *kmsg.FindCoordinatorResponse:
		for _, c := range r.Coordinators {
			k.say("of=%s node=%d", word(c.Key), c.NodeID)
			k.fault(c.ErrorCode)
		}
		if r.Version < 4 {
			k.say("node=%d", r.NodeID)
			k.fault(r.ErrorCode)
		}
	case *kmsg.CreateTopicsResponse:
		for _, topic := range r.Topics {
			t.learn(topic.TopicID, topic.Topic)
			k.say("topic=%s", word(topic.Topic))
			k.fault(topic.ErrorCode)
		}
	case *kmsg.DeleteTopicsResponse:
		for _, topic := range r.Topics {
			name := ""
			if topic.Topic != nil {
				name = *topic.Topic
			}
			k.say("topic=%s", word(t.topic(name, topic.TopicID)))
			k.fault(topic.ErrorCode)
		}
	case *kmsg.MetadataResponse:
		for _, topic := range r.Topics {
			name := ""
			if topic.Topic != nil {
				name = *topic.Topic
			}
			t.learn(topic.TopicID, name)
			k.say("topic=%s partitions=%d error=%s", word(name), len(topic.Partitions), kafkaError(topic.ErrorCode))
		}
	case *kmsg.InitProducerIDResponse:
		k.say("producer=%d epoch=%d", r.ProducerID, r.ProducerEpoch)
		k.fault(r.ErrorCode)
	}
	return k
}

func (t *kafkaTalk) tellFetched(k *told, r *kmsg.FetchResponse) {
	nothing := true
	for _, topic := range r.Topics {
		for _, p := range topic.Partitions {
			rs := readRecords(p.RecordBatches)
			if rs.count == 0 && p.ErrorCode == 0 && len(p.RecordBatches) == 0 {
				continue
			}
			nothing = false
			k.about(t.topic(topic.Topic, topic.TopicID), p.Partition, rs.base)
			if len(p.RecordBatches) > 0 {
				k.say("%s", rs.show())
			}
			k.say("high-watermark=%d", p.HighWatermark)
			k.fault(p.ErrorCode)
		}
	}
	if r.ErrorCode != 0 {
		k.fault(r.ErrorCode)
	} else if nothing {
		k.say("nothing")
		k.noise = true
	}
}

// assignment is which partitions a member of a group gets.
func assignment(b []byte) string {
	var a kmsg.ConsumerMemberAssignment
	if len(b) == 0 {
		return "nothing"
	}
	if err := read(&a, b); err != nil {
		return fmt.Sprintf("(%d bytes)", len(b))
	}
	var topics []string
	for _, t := range a.Topics {
		topics = append(topics, fmt.Sprintf("%s%v", word(t.Topic), t.Partitions))
	}
	if topics == nil {
		return "nothing"
	}
	return strings.Join(topics, " ")
}
