package node

import (
	"testing"

	"queuelab/bench/broker/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }
