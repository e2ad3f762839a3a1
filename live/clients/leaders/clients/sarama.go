// sarama ADDRESS GROUP TOPICS ASSIGNOR: a consumer group of sarama that consumes. ASSIGNOR may be a list.
package main

import (
	"context"
	"errors"
	"fmt"

	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const day = 24 * time.Hour

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for range claim.Messages() {
	}
	return nil
}

func main() {
	strategies := map[string]func() sarama.BalanceStrategy{
		"range":      sarama.NewBalanceStrategyRange,
		"roundrobin": sarama.NewBalanceStrategyRoundRobin,
		"sticky":     sarama.NewBalanceStrategySticky,
	}
	for name, strategy := range newer {
		strategies[name] = strategy
	}
	var wanted []sarama.BalanceStrategy
	for _, name := range strings.Split(os.Args[4], ",") {
		strategy, known := strategies[name]
		if !known {
			fmt.Fprintln(os.Stderr, "no strategy is called", name)
			os.Exit(2)
		}
		wanted = append(wanted, strategy())
	}

	config := sarama.NewConfig()
	config.ClientID = "leader"
	if os.Getenv("DEFAULT_VERSION") == "" {
		config.Version = sarama.MaxVersion // with the default one its leader hangs on topics that it does not know yet (1.61.1)
	}
	config.ApiVersionsRequest = true
	config.Consumer.Group.Rebalance.GroupStrategies = wanted
	config.Consumer.Group.Session.Timeout = time.Hour
	config.Consumer.Group.Heartbeat.Interval = 20 * time.Millisecond
	config.Consumer.Group.Rebalance.Timeout = day
	config.Consumer.Group.Rebalance.Retry.Backoff = 0
	config.Consumer.Group.Rebalance.Retry.Max = 1 << 30
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Return.Errors = true
	config.Metadata.RefreshFrequency = 0
	config.Metadata.Retry.Max = 0
	config.Net.ReadTimeout = day
	group, err := sarama.NewConsumerGroup(strings.Split(os.Args[1], ","), os.Args[2], config)
	if err == nil {
		go func() {
			for err := range group.Errors() {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
	for group != nil {
		err := group.Consume(context.Background(), strings.Split(os.Args[3], ","), handler{})
		if errors.Is(err, sarama.ErrClosedConsumerGroup) {
			break
		}
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
