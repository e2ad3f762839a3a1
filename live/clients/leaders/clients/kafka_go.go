// kafka-go ADDRESS GROUP TOPICS ASSIGNOR: a consumer group of kafka-go that joins each generation. ASSIGNOR may be a
// list.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

const day = 24 * time.Hour

func main() {
	known := map[string]kafka.GroupBalancer{
		"range":      kafka.RangeGroupBalancer{},
		"roundrobin": kafka.RoundRobinGroupBalancer{},
	}
	var balancers []kafka.GroupBalancer
	for _, name := range strings.Split(os.Args[4], ",") {
		balancer, is := known[name]
		if !is {
			fmt.Fprintln(os.Stderr, "no balancer is called", name)
			os.Exit(2)
		}
		balancers = append(balancers, balancer)
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                os.Args[2],
		Brokers:           []string{os.Args[1]},
		Topics:            strings.Split(os.Args[3], ","),
		GroupBalancers:    balancers,
		HeartbeatInterval: 20 * time.Millisecond,
		SessionTimeout:    time.Hour,
		RebalanceTimeout:  day,
		JoinGroupBackoff:  time.Millisecond,
		Timeout:           day,
		ErrorLogger: kafka.LoggerFunc(func(text string, values ...interface{}) {
			fmt.Fprintf(os.Stderr, text+"\n", values...)
		}),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		// It fetches offsets of what it is assigned, and sends heartbeats until the generation ends.
		if _, err := group.Next(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}
