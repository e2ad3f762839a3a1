// franz-go ADDRESS GROUP TOPICS ASSIGNOR: a consumer of franz-go that polls. TOPICS is .* where it is to
// lead, so that it has the metadata of all topics before that; ASSIGNOR may be a list.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
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
	var wanted []kgo.GroupBalancer
	for _, name := range strings.Split(os.Args[4], ",") {
		balancer, known := balancers[name]
		if !known {
			fmt.Fprintln(os.Stderr, "no balancer is called", name)
			os.Exit(2)
		}
		wanted = append(wanted, balancer)
	}
	soon := func(int) time.Duration { return time.Millisecond }
	options := []kgo.Opt{
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumerGroup(os.Args[2]),
		kgo.ConsumeTopics(strings.Split(os.Args[3], ",")...),
		kgo.Balancers(wanted...),
		kgo.SessionTimeout(time.Hour),
		kgo.RebalanceTimeout(day),
		kgo.HeartbeatInterval(20 * time.Millisecond),
		kgo.RequestTimeoutOverhead(15 * time.Minute),
		kgo.ConnIdleTimeout(15 * time.Minute),
		kgo.MetadataMinAge(10 * time.Millisecond),
		kgo.MetadataMaxAge(10 * time.Millisecond),
		kgo.RetryBackoffFn(soon),
		kgo.DisableAutoCommit(),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	}
	if os.Args[3] == ".*" {
		options = append(options, kgo.ConsumeRegex())
	}
	client, err := kgo.NewClient(options...)
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
