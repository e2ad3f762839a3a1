#!/bin/sh
# kfake 0.0.0-20260918054303 (the fake broker of franz-go 1.22.3): a consumer group and a classic group of one name.
#
# Guess before the run: a classic member that joins a live consumer group is refused, or takes part in it, as on Kafka
# 4.4.0, which serves both in one group and has the first member give up half.
# Seen: it gets a classic group of its own beside the other. The member of the consumer protocol keeps all four
# partitions, and franz-go's classic consumer is assigned all four, so each has two owners and nobody hears an error.
# The other way round the member of the consumer protocol is refused (GROUP_ID_NOT_FOUND), where Kafka converts the
# group. So a rolling upgrade between the protocols passes or fails on kfake for reasons that Kafka does not have.
# (kfake of that day needs franz-go 1.22; its go.mod names 1.21.7, with which it does not compile.)
set -eu
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// beat sends a heartbeat of the consumer protocol: the first of a member has epoch 0.
func beat(client *kgo.Client, group string, epoch int32) (int32, string, int) {
	request := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	request.Group, request.MemberID, request.MemberEpoch = group, "a", epoch
	request.RebalanceTimeoutMillis = 10000
	if epoch == 0 {
		request.SubscribedTopicNames, request.Topics = []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	}
	response := must(request.RequestWith(context.Background(), client))
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return 0, err.(*kerr.Error).Message, 0
	}
	partitions := -1
	if response.Assignment != nil {
		partitions = 0
		for _, topic := range response.Assignment.Topics {
			partitions += len(topic.Partitions)
		}
	}
	return response.MemberEpoch, "no error", partitions
}

func classic(address, group string) int {
	assigned := make(chan int, 1)
	client := must(kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumerGroup(group), kgo.ConsumeTopics("t"),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) { assigned <- len(given["t"]) })))
	go func() {
		for {
			client.PollFetches(context.Background())
		}
	}()
	select {
	case partitions := <-assigned:
		return partitions
	case <-time.After(20 * time.Second):
		return 0
	}
}

func main() {
	broker := must(kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "t")))
	address := broker.ListenAddrs()[0]
	raw := must(kgo.NewClient(kgo.SeedBrokers(address)))

	epoch, said, partitions := beat(raw, "orders", 0)
	fmt.Println("a consumer member joins:", said, "partitions", partitions)
	fmt.Println("a classic member joins: partitions", classic(address, "orders"))
	for range 3 {
		time.Sleep(time.Second)
		epoch, said, partitions = beat(raw, "orders", epoch)
	}
	fmt.Println("the first goes on:", said, "new assignment", partitions >= 0)

	fmt.Println("a classic member is there: partitions", classic(address, "bills"))
	_, said, _ = beat(raw, "bills", 0)
	fmt.Println("a consumer member joins:", said)
}
GO
{
    go mod init example/play
    go get github.com/twmb/franz-go@v1.22.3 github.com/twmb/franz-go/pkg/kfake@v0.0.0-20260918054303-01f206a7e32c
    go mod tidy
} >go.log 2>&1 || { cat go.log; exit 1; }
timeout 300 go run . >seen
cat seen
cat >expected <<'TEXT'
a consumer member joins: no error partitions 4
a classic member joins: partitions 4
the first goes on: no error new assignment false
a classic member is there: partitions 4
a consumer member joins: GROUP_ID_NOT_FOUND
TEXT
diff expected seen && echo "as seen before"
