// The balance strategies of sarama as a target of rebalance-verifier.
package main

import (
	"fmt"
	"maps"
	"os"
	"reflect"

	"rebalance.example/adapters/stdio"

	"github.com/IBM/sarama"
)

type strategy struct {
	new       func() sarama.BalanceStrategy
	protocols []string
	promises  []string
}

// What the documentation of each function claims.
var strategies = map[string]strategy{
	"range":              {sarama.NewBalanceStrategyRange, []string{"eager"}, []string{"balanced-per-topic", "co-partitioned"}},
	"roundrobin":         {sarama.NewBalanceStrategyRoundRobin, []string{"eager"}, []string{"balanced-equal"}},
	"sticky":             {sarama.NewBalanceStrategySticky, []string{"eager"}, []string{"balanced", "sticky"}},
	"cooperative-sticky": {sarama.NewBalanceStrategyCooperativeSticky, []string{"cooperative", "eager"}, []string{"balanced", "sticky"}},
}

type target struct {
	strategy
	leader sarama.BalanceStrategy
}

func (t target) Hello() stdio.Hello {
	return stdio.Hello{
		Name:      t.leader.Name(),
		Version:   stdio.Version("github.com/IBM/sarama"),
		Language:  "Go",
		Protocols: t.protocols,
		Promises:  t.promises,
		UserData:  true,
		Homepage:  "https://github.com/IBM/sarama",
		Issues:    "https://github.com/IBM/sarama/issues",
	}
}

// Assign does what consumerGroup.balance and syncGroupRequest do, and each member with its bytes. One
// difference: sarama's leader gives up when a subscribed topic has no metadata; here it has no partitions.
func (t target) Assign(cluster stdio.Cluster, members []stdio.Member) (stdio.Assignment, error) {
	input, err := read(cluster, members)
	if err != nil {
		return stdio.Assignment{}, err
	}
	if len(input.topics) == 0 {
		return stdio.Assignment{}, stdio.Skip("nobody subscribes: Consume refuses an empty list of topics")
	}
	before, _ := read(cluster, members)
	plan, err := t.leader.Plan(input.members, input.topics)
	if err != nil {
		return stdio.Assignment{}, err
	}
	found := stdio.Assignment{Members: map[string]stdio.Partitions{}}
	if !reflect.DeepEqual(input, before) {
		mutated := fmt.Sprintf("members and topics were %v, became %v", before, input)
		found.Mutated = &mutated
	}
	for id := range input.members {
		if _, planned := plan[id]; !planned {
			plan[id] = nil // syncGroupRequest adds the empty ones
		}
	}
	for id, topics := range plan {
		if found.Members[id], err = crossed(id, topics); err != nil {
			return stdio.Assignment{}, err
		}
	}
	return found, nil
}

type input struct {
	members map[string]sarama.ConsumerGroupMemberMetadata
	topics  map[string][]int32
}

func read(cluster stdio.Cluster, members []stdio.Member) (input, error) {
	response := sarama.JoinGroupResponse{}
	for _, member := range members {
		response.Members = append(response.Members, sarama.GroupMember{
			MemberId:        member.ID,
			GroupInstanceId: member.Instance,
			Metadata:        append([]byte{}, member.Metadata...),
		})
	}
	decoded, err := response.GetMembers()
	topics := map[string][]int32{}
	for _, member := range decoded {
		for _, topic := range member.Topics {
			topics[topic] = make([]int32, len(cluster.Topics[topic]))
			for index := range topics[topic] {
				topics[topic][index] = int32(index)
			}
		}
	}
	return input{decoded, topics}, err
}

// One assignment over the wire, from the leader to its member.
func crossed(id string, topics map[string][]int32) (stdio.Partitions, error) {
	request := sarama.SyncGroupRequest{}
	if err := request.AddGroupAssignmentMember(id, &sarama.ConsumerGroupMemberAssignment{Topics: topics}); err != nil {
		return nil, err
	}
	response := sarama.SyncGroupResponse{MemberAssignment: request.GroupAssignments[0].Assignment}
	assignment, err := response.GetMemberAssignment()
	if err != nil {
		return nil, err
	}
	return assignment.Topics, nil
}

// UserData comes from the member's own strategy if it writes some, else it is what its leader sent along
// with the last assignment: Plan and AssignmentData on one side, an echo on the other.
func (t target) UserData(owned stdio.Partitions, generation int32) ([]byte, error) {
	member := t.new()
	if generation >= 0 {
		if told, ok := member.(sarama.OnAssignmentBalanceStrategy); ok {
			told.OnAssignment(&sarama.ConsumerGroupMemberAssignment{Topics: maps.Clone(owned)}, generation)
		}
	}
	if writes, ok := member.(sarama.SubscriptionUserDataBalanceStrategy); ok {
		return writes.SubscriptionUserData(nil)
	}
	if generation < 0 {
		return nil, nil // Consumer.Group.Member.UserData, empty by default
	}
	return member.AssignmentData("", owned, generation)
}

func main() {
	if len(os.Args) == 2 {
		if found, known := strategies[os.Args[1]]; known {
			stdio.Serve(target{found, found.new()})
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: sarama range|roundrobin|sticky|cooperative-sticky")
	os.Exit(2)
}
