package broker_test

import (
	"testing"

	"queuelab/bench/broker/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }
