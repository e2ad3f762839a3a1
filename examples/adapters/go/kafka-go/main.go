// The group balancers of kafka-go as a target of rebalance-verifier.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"rebalance.example/adapters/stdio"

	"github.com/segmentio/kafka-go"
)

type balancer struct {
	kafka.GroupBalancer
	promises []string
}

// What the documentation of each type claims.
var balancers = map[string]balancer{
	"range":         {kafka.RangeGroupBalancer{}, []string{"balanced-per-topic", "co-partitioned"}},
	"roundrobin":    {kafka.RoundRobinGroupBalancer{}, []string{"balanced-per-topic"}},
	"rack-affinity": {kafka.RackAffinityGroupBalancer{}, []string{"balanced-per-topic"}},
}

type target struct{ balancer }

func (t target) Hello() stdio.Hello {
	return stdio.Hello{
		Name:      t.ProtocolName(),
		Version:   stdio.Version("github.com/segmentio/kafka-go"),
		Language:  "Go",
		Protocols: []string{"eager"},
		Promises:  t.promises,
		Homepage:  "https://github.com/segmentio/kafka-go",
		Issues:    "https://github.com/segmentio/kafka-go/issues",
	}
}

// Assign does what ConsumerGroup.assignTopicPartitions does in a group of kafka-go's own members. Those write version 1
// without owned partitions, and its leader refuses a subscription that has anything behind its user data: so members
// come from the fields of the request, not from its bytes.
func (t target) Assign(cluster stdio.Cluster, members []stdio.Member) (stdio.Assignment, error) {
	group := make([]kafka.GroupMember, len(members))
	wanted := map[string]bool{}
	for i, member := range members {
		group[i] = kafka.GroupMember{ID: member.ID, Topics: member.Topics}
		if member.Rack != nil {
			group[i].UserData = []byte(*member.Rack) // RackAffinityGroupBalancer.UserData
		}
		for _, topic := range member.Topics {
			wanted[topic] = true
		}
	}
	var partitions []kafka.Partition
	for _, topic := range slices.Sorted(maps.Keys(wanted)) {
		racks, known := cluster.Topics[topic]
		if !known {
			partitions = nil // Conn.ReadPartitions gives none if one topic is unknown, and the leader takes that for all
			break
		}
		partitions = append(partitions, described(topic, racks)...)
	}
	plan := t.AssignGroups(group, partitions)
	found := stdio.Assignment{Members: map[string]stdio.Partitions{}}
	for _, member := range members {
		found.Members[member.ID] = stdio.Partitions{} // the broker gives nothing to a member that the plan leaves out
	}
	for id, topics := range plan {
		for topic, indexes := range topics {
			for _, index := range indexes {
				found.Members[id][topic] = append(found.Members[id][topic], int32(index))
			}
		}
	}
	return found, nil
}

func described(topic string, racks [][]string) []kafka.Partition {
	found := make([]kafka.Partition, len(racks))
	for index, replicas := range racks {
		found[index] = kafka.Partition{Topic: topic, ID: index}
		if len(replicas) > 0 {
			found[index].Leader.Rack = replicas[0]
		}
	}
	return found
}

// UserData is never asked for: range and roundrobin write none, and a rack is in the request.
func (t target) UserData(stdio.Partitions, int32) ([]byte, error) { return nil, nil }

func main() {
	if len(os.Args) == 2 {
		if found, known := balancers[os.Args[1]]; known {
			stdio.Serve(target{found})
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: kafka-go range|roundrobin|rack-affinity")
	os.Exit(2)
}
