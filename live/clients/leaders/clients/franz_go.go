// franz-go ADDRESS GROUP TOPICS ASSIGNOR: a consumer of franz-go that polls. It subscribes to all topics that there
// are, so that it has their metadata before it is the leader.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const day = 24 * time.Hour

func main() {
	balancers := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"sticky":             kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	balancer, known := balancers[os.Args[4]]
	if !known {
		fmt.Fprintln(os.Stderr, "no balancer is called", os.Args[4])
		os.Exit(2)
	}
	soon := func(int) time.Duration { return time.Millisecond }
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumerGroup(os.Args[2]),
		kgo.ConsumeRegex(),
		kgo.ConsumeTopics(".*"),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(time.Hour),
		kgo.RebalanceTimeout(day),
		kgo.HeartbeatInterval(20*time.Millisecond),
		kgo.RequestTimeoutOverhead(15*time.Minute),
		kgo.ConnIdleTimeout(15*time.Minute),
		kgo.MetadataMinAge(10*time.Millisecond),
		kgo.MetadataMaxAge(10*time.Millisecond),
		kgo.RetryBackoffFn(soon),
		kgo.DisableAutoCommit(),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		client.PollFetches(context.Background()).EachError(func(topic string, partition int32, err error) {
			fmt.Fprintln(os.Stderr, topic, partition, err)
		})
	}
}
