// A target of rebalance-verifier in Go, to start from; it needs nothing but the standard library:
//
//	go build adapter.go && rebalance check --adapter --validate -- ./adapter
//
// It is sticky in the simplest way: keep what was assigned last, deal out the rest. Replace hello, assign, userData.
package main

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"runtime/debug"
	"slices"
)

var hello = map[string]any{
	"name": "template", "version": "1.0", "language": "Go",
	"protocols": []string{"eager"}, // "cooperative" if it withholds what changes its owner
	"promises":  []string{},        // what its documentation claims: see docs/how-to/judge-in-another-language.md
	"user_data": true,              // false if its members write none: userData is then never asked
}

// Runs are partitions as the protocol writes them: [[topic, [partition, ...]], ...].
type Runs []Run

// Run is partitions of one topic.
type Run struct {
	Topic      string
	Partitions []int
}

// Member is one member's subscription. The protocol has more of it: see docs/how-to/judge-in-another-language.md.
type Member struct {
	ID       string   `json:"id"`
	Topics   []string `json:"topics"`
	UserData string   `json:"user_data"`
}

// What a member writes into its subscription that was last assigned owned, in generation, -1 before the first. Any
// bytes: here generation and partitions, as JSON.
func userData(owned Runs, generation int) ([]byte, error) {
	return json.Marshal(memory{generation, owned})
}

type memory struct {
	Generation int  `json:"generation"`
	Owned      Runs `json:"owned"`
}

type partition struct {
	topic string
	index int
}

// Member id to partitions. topics has for each topic one entry per partition, the racks of its replicas; a topic
// that the leader does not know is absent, though members may subscribe to it.
func assign(topics map[string][][]string, members []Member) (map[string]Runs, error) {
	found := map[string]Runs{}
	taken := map[partition]bool{}
	give := func(id, topic string, index int) {
		taken[partition{topic, index}] = true
		found[id] = append(found[id], Run{topic, []int{index}})
	}
	// The newer claim first, and of claims of equal age that of the lesser id: nothing may depend on the order of
	// members.
	claims := map[string]memory{}
	for _, member := range members {
		found[member.ID], claims[member.ID] = Runs{}, remembered(member.UserData)
	}
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(claims[b.ID].Generation, claims[a.ID].Generation), cmp.Compare(a.ID, b.ID))
	})
	for _, member := range members {
		for _, run := range claims[member.ID].Owned {
			if !slices.Contains(member.Topics, run.Topic) {
				continue
			}
			for _, index := range run.Partitions {
				if index >= 0 && index < len(topics[run.Topic]) && !taken[partition{run.Topic, index}] {
					give(member.ID, run.Topic, index)
				}
			}
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		for index := range topics[topic] {
			least := ""
			for _, id := range subscribers(members, topic) {
				if least == "" || len(found[id]) < len(found[least]) {
					least = id
				}
			}
			if least != "" && !taken[partition{topic, index}] {
				give(least, topic, index)
			}
		}
	}
	return found, nil
}

func subscribers(members []Member, topic string) (ids []string) {
	for _, member := range members {
		if slices.Contains(member.Topics, topic) {
			ids = append(ids, member.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// What userData wrote; nothing if another client wrote it, or nobody did.
func remembered(digits string) memory {
	found := memory{Generation: -1}
	data, err := hex.DecodeString(digits)
	if err = errors.Join(err, json.Unmarshal(data, &found)); err != nil {
		return memory{Generation: -1}
	}
	return found
}

// --- the protocol: one JSON object per line, one reply per request, in order; print to stderr, never to stdout ---

// MarshalJSON writes a pair.
func (r Run) MarshalJSON() ([]byte, error) { return json.Marshal([2]any{r.Topic, r.Partitions}) }

// UnmarshalJSON reads a pair.
func (r *Run) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[2]any{&r.Topic, &r.Partitions})
}

type request struct {
	Seq     int    `json:"seq"`
	Cmd     string `json:"cmd"`
	Cluster struct {
		Topics map[string][][]string `json:"topics"`
	} `json:"cluster"`
	Members    []Member `json:"members"`
	Owned      Runs     `json:"owned"`
	Generation int      `json:"generation"`
}

func answer(asked request) (reply map[string]any) {
	defer func() {
		if trouble := recover(); trouble != nil {
			reply = errored(asked.Seq, fmt.Sprint("panic: ", trouble), string(debug.Stack()))
		}
	}()
	var result any
	var err error
	switch asked.Cmd {
	case "hello":
		result = hello
	case "user_data":
		var data []byte
		data, err = userData(asked.Owned, asked.Generation)
		result = map[string]string{"user_data": hex.EncodeToString(data)}
	default:
		var found map[string]Runs
		found, err = assign(asked.Cluster.Topics, asked.Members)
		result = map[string]any{"assignment": found}
	}
	if err != nil {
		return errored(asked.Seq, err.Error(), "")
	}
	return map[string]any{"seq": asked.Seq, "result": result}
}

func errored(seq int, message, trace string) map[string]any {
	return map[string]any{"seq": seq, "errored": map[string]string{"message": message, "traceback": trace}}
}

func main() {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		var asked request
		if err := errors.Join(err, json.Unmarshal(line, &asked)); err != nil {
			log.Fatalf("%v in %.200s", err, line)
		}
		if asked.Cmd == "bye" {
			return
		}
		if err := out.Encode(answer(asked)); err != nil {
			log.Fatal(err)
		}
	}
}
