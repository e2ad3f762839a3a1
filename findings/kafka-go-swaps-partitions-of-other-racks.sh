#!/bin/sh
# kafka-go 0.4.51, RackAffinityGroupBalancer: equal members and equal partitions do not give equal plans.
#
# Partitions whose leader is in a rack of no member are dealt at the end, in the order of a Go map of racks, which
# differs from call to call.
# No guess stood before it: a judge of assignors met it. One expects that a plan follows from members and partitions, so
# that a rebalance in which nothing changed moves nothing.
# Seen: in a hundred calls two members and two partitions have both plans that there are, so equal rebalances swap them.
# With a member in each rack there is one plan. RangeGroupBalancer and RoundRobinGroupBalancer have one in any case.
set -eu
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
cat >main.go <<'GO'
package main

import (
	"fmt"

	"github.com/segmentio/kafka-go"
)

func plans(balancer kafka.GroupBalancer, racks ...string) int {
	var members []kafka.GroupMember
	for i, rack := range racks {
		members = append(members, kafka.GroupMember{ID: string(rune('A' + i)), Topics: []string{"t"}, UserData: []byte(rack)})
	}
	partitions := []kafka.Partition{
		{Topic: "t", ID: 0, Leader: kafka.Broker{Rack: "x"}},
		{Topic: "t", ID: 1, Leader: kafka.Broker{Rack: "y"}},
	}
	seen := map[string]bool{}
	for range 100 {
		seen[fmt.Sprint(balancer.AssignGroups(members, partitions))] = true
	}
	return len(seen)
}

func main() {
	affinity := kafka.RackAffinityGroupBalancer{}
	fmt.Println("rack affinity, members in other racks than the leaders:", plans(affinity, "v", "w"), "plans")
	fmt.Println("rack affinity, a member in each rack:", plans(affinity, "x", "y"), "plan")
	fmt.Println("range:", plans(kafka.RangeGroupBalancer{}, "v", "w"), "plan")
	fmt.Println("roundrobin:", plans(kafka.RoundRobinGroupBalancer{}, "v", "w"), "plan")
}
GO
{ go mod init example/play && go get github.com/segmentio/kafka-go@v0.4.51 && go mod tidy; } >go.log 2>&1 || { cat go.log; exit 1; }
timeout 300 go run . >seen
cat seen
cat >expected <<'TEXT'
rack affinity, members in other racks than the leaders: 2 plans
rack affinity, a member in each rack: 1 plan
range: 1 plan
roundrobin: 1 plan
TEXT
diff expected seen && echo "as seen before"
