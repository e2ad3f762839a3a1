#!/bin/sh
# franz-go 1.22.3 leads a cooperative-sticky group: what a member of sarama 1.61.1 owns is not kept.
#
# sarama writes a subscription of version 1, as its default Version has it: owned partitions, and the generation in
# four bytes of user data, as Java wrote both before 3.4.0. kafka-python and @platformatic/kafka write version 1 too.
# No guess stood before it: it came out of a matrix of leaders and members. One expects that a member which owns 0
# and 3 of four keeps them, and that a new one gets 1 and 2, whoever leads.
# Seen: franz-go's leader takes the member of version 1 for a new one. It deals it 1 and 2, withholds 0 and 3 until it
# has given them up, and the newcomer has nothing until the next rebalance: everything moves. Nobody owns a partition
# twice, since what it withholds it does read from the owned partitions. In version 2, where the generation is a field,
# the same claims are kept.
set -eu
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What a member of sarama sends in JoinGroup.
func joined(version int16, owned []int32, generation int32) []byte {
	data := binary.BigEndian.AppendUint32(nil, uint32(generation))
	metadata := &sarama.ConsumerGroupMemberMetadata{
		Version: version, Topics: []string{"t"}, UserData: data, GenerationID: generation,
	}
	if len(owned) > 0 {
		metadata.OwnedPartitions = []*sarama.OwnedPartition{{Topic: "t", Partitions: owned}}
	}
	request := &sarama.JoinGroupRequest{}
	if err := request.AddGroupProtocolMetadata("cooperative-sticky", metadata); err != nil {
		panic(err)
	}
	return request.OrderedGroupProtocols[0].Metadata
}

func main() {
	for _, version := range []int16{1, 2} {
		for _, owned := range [][]int32{{0, 3}, {1, 2}} {
			leader := kgo.CooperativeStickyBalancer()
			balancer, _, err := leader.MemberBalancer([]kmsg.JoinGroupResponseMember{
				{MemberID: "new", ProtocolMetadata: joined(version, nil, -1)},
				{MemberID: "old", ProtocolMetadata: joined(version, owned, 6)},
			})
			if err != nil {
				panic(err)
			}
			plan, err := balancer.(kgo.GroupMemberBalancerOrError).BalanceOrError(map[string]int32{"t": 4})
			if err != nil {
				panic(err)
			}
			given := map[string][]int32{}
			for _, sync := range plan.IntoSyncAssignment() {
				topics, err := leader.ParseSyncAssignment(sync.MemberAssignment)
				if err != nil {
					panic(err)
				}
				slices.Sort(topics["t"])
				given[sync.MemberID] = topics["t"]
			}
			fmt.Printf("version %d, old owns %v: old gets %v, new gets %v\n", version, owned, given["old"], given["new"])
		}
	}
}
GO
{
    go mod init example/play && go get github.com/IBM/sarama@v1.61.1 github.com/twmb/franz-go@v1.22.3 && go mod tidy
} >go.log 2>&1 || { cat go.log; exit 1; }
timeout 300 go run . >seen
cat seen
cat >expected <<'TEXT'
version 1, old owns [0 3]: old gets [1 2], new gets []
version 1, old owns [1 2]: old gets [1 2], new gets [0 3]
version 2, old owns [0 3]: old gets [0 3], new gets [1 2]
version 2, old owns [1 2]: old gets [1 2], new gets [0 3]
TEXT
diff expected seen && echo "as seen before"
