// The balancers of franz-go (pkg/kgo) as a target of rebalance-verifier.
package main

import (
	"bytes"
	"fmt"
	"os"
	"sort"

	"rebalance.example/adapters/stdio"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type balancer struct {
	new       func() kgo.GroupBalancer
	protocols []string
	promises  []string
}

// What the documentation of each function claims. BalanceRacks is an option of the client, out of reach here. A
// client is cooperative as soon as cooperative-sticky is chosen, whatever its other balancers are: never eager.
var balancers = map[string]balancer{
	"range":              {kgo.RangeBalancer, []string{"eager"}, []string{"balanced-per-topic", "co-partitioned"}},
	"roundrobin":         {kgo.RoundRobinBalancer, []string{"eager"}, []string{"balanced-equal"}},
	"sticky":             {kgo.StickyBalancer, []string{"eager"}, []string{"balanced", "sticky"}},
	"cooperative-sticky": {kgo.CooperativeStickyBalancer, []string{"cooperative"}, []string{"balanced", "sticky"}},
}

type target struct {
	balancer
	group kgo.GroupBalancer
}

func (t target) Hello() stdio.Hello {
	return stdio.Hello{
		Name:      t.group.ProtocolName(),
		Version:   stdio.Version("github.com/twmb/franz-go"),
		Language:  "Go",
		Protocols: t.protocols,
		Promises:  t.promises,
		UserData:  true,
		Homepage:  "https://github.com/twmb/franz-go",
		Issues:    "https://github.com/twmb/franz-go/issues",
	}
}

// Assign does what groupConsumer.balanceGroup does with a JoinGroup response, and each member with its bytes.
func (t target) Assign(cluster stdio.Cluster, members []stdio.Member) (stdio.Assignment, error) {
	joined := make([]kmsg.JoinGroupResponseMember, len(members))
	for i, member := range members {
		joined[i] = kmsg.JoinGroupResponseMember{
			MemberID:         member.ID,
			InstanceID:       member.Instance,
			ProtocolMetadata: bytes.Clone(member.Metadata),
		}
	}
	sort.Slice(joined, func(i, j int) bool { return less(joined[i], joined[j]) })
	balancer, topics, err := t.group.MemberBalancer(joined)
	if err != nil {
		return stdio.Assignment{}, err
	}
	counts := map[string]int32{}
	for topic := range topics {
		if partitions, known := cluster.Topics[topic]; known {
			counts[topic] = int32(len(partitions))
		}
	}
	plan, err := balancer.(kgo.GroupMemberBalancerOrError).BalanceOrError(counts)
	if err != nil {
		return stdio.Assignment{}, err
	}
	found := stdio.Assignment{Members: map[string]stdio.Partitions{}}
	for _, sync := range plan.IntoSyncAssignment() {
		if found.Members[sync.MemberID], err = t.group.ParseSyncAssignment(sync.MemberAssignment); err != nil {
			return stdio.Assignment{}, err
		}
	}
	return found, nil
}

// The order that MemberBalancer is promised: static members first, by instance id, then the others by id.
func less(a, b kmsg.JoinGroupResponseMember) bool {
	if a.InstanceID != nil && b.InstanceID != nil {
		return *a.InstanceID < *b.InstanceID
	}
	if a.InstanceID == nil && b.InstanceID == nil {
		return a.MemberID < b.MemberID
	}
	return a.InstanceID != nil
}

func (t target) UserData(owned stdio.Partitions, generation int32) ([]byte, error) {
	var written kmsg.ConsumerMemberMetadata
	err := written.ReadFrom(t.group.JoinGroupMetadata(nil, owned, generation))
	return written.UserData, err
}

func main() {
	if len(os.Args) == 2 {
		if found, known := balancers[os.Args[1]]; known {
			stdio.Serve(target{found, found.new()})
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: franz-go range|roundrobin|sticky|cooperative-sticky")
	os.Exit(2)
}
