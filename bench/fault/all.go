package fault

// All lists every fault, in the order in which tables show them.
func All() []Fault {
	return []Fault{
		None(),
		ConsumerKillOnReceive(), ConsumerKillMidHandle(), ConsumerKillSlowHandler(), ConsumerKillBeforeAck(), ConsumerKillAfterAck(), ZombieConsumer(), SlowConsumer(), ConsumerJoinsLeaves(), Poison(),
		ProducerKill(),
		BrokerKill(), BrokerStop(), BrokerFreeze(),
		PowerLoss(), SlowFsync(), DiskFull(),
		LostReplyPublish(), LostReplyReceive(), Reset(), BlackHoleConsumer(), Latency(), Bandwidth(), IdleClose(),
		QueueLimit(), MemoryEnd(), OutOfMemory(), MemoryWatermark(), Unroutable(), KeyDelete(), GroupDelete(), DelConsumer(), ScriptFlush(), Bell(),
		DatabaseDown(), DatabaseKill(), CommitReplyLost(),
		LeaderKill(), FollowerKill(), LeaderPartition(), MajorityLoss(),
	}
}

// Lookup finds a fault by its name.
func Lookup(name string) (Fault, bool) {
	for _, f := range All() {
		if f.Name == name {
			return f, true
		}
	}
	return Fault{}, false
}
