// Package stdio speaks the JSON-lines protocol of rebalance-verifier: what the adapters of this module share.
package stdio

import (
	"bufio"
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

// Hello is what a target says of itself.
type Hello struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Language  string   `json:"language"`
	Protocols []string `json:"protocols"`
	Promises  []string `json:"promises"`
	UserData  bool     `json:"user_data"`
	Homepage  string   `json:"homepage"`
	Issues    string   `json:"issues"`
}

// Cluster has, for each topic, one entry per partition: the racks that hold a replica.
type Cluster struct {
	Topics map[string][][]string `json:"topics"`
}

// Member is one member's subscription. Metadata is what it sent, on Kafka's wire; the rest says the same.
type Member struct {
	ID       string   `json:"id"`
	Instance *string  `json:"instance"`
	Metadata Bytes    `json:"metadata"`
	Topics   []string `json:"topics"`
	Rack     *string  `json:"rack"`
}

// Bytes travel as hex digits; nil is null.
type Bytes []byte

// MarshalJSON writes hex digits.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	return json.Marshal(hex.EncodeToString(b))
}

// UnmarshalJSON reads hex digits.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	var digits *string
	if err := json.Unmarshal(text, &digits); err != nil || digits == nil {
		return err
	}
	var err error
	*b, err = hex.DecodeString(*digits)
	return err
}

// Partitions is topic to partitions, on the line as [[topic, [partition, ...]], ...].
type Partitions map[string][]int32

// MarshalJSON writes the topics in their order.
func (p Partitions) MarshalJSON() ([]byte, error) {
	runs := make([][2]any, 0, len(p))
	for _, topic := range slices.Sorted(maps.Keys(p)) {
		runs = append(runs, [2]any{topic, slices.Concat([]int32{}, p[topic])}) // never null
	}
	return json.Marshal(runs)
}

// UnmarshalJSON reads runs; several of one topic are one.
func (p *Partitions) UnmarshalJSON(text []byte) error {
	var runs [][2]json.RawMessage
	if err := json.Unmarshal(text, &runs); err != nil {
		return err
	}
	*p = Partitions{}
	for _, run := range runs {
		var topic string
		var partitions []int32
		if err := errors.Join(json.Unmarshal(run[0], &topic), json.Unmarshal(run[1], &partitions)); err != nil {
			return err
		}
		(*p)[topic] = append((*p)[topic], partitions...)
	}
	return nil
}

// Assignment is the answer: member id to partitions, and what the assignor changed in its input, if it did.
type Assignment struct {
	Members map[string]Partitions `json:"assignment"`
	Mutated *string               `json:"mutated,omitempty"`
}

// Target is an assignor behind the protocol.
type Target interface {
	Hello() Hello
	// Assign answers as the leader does. An error breaks clause assign/4, unless it is a Skip.
	Assign(cluster Cluster, members []Member) (Assignment, error)
	// UserData is what a member writes that was last assigned owned, in generation; -1 before the first.
	UserData(owned Partitions, generation int32) ([]byte, error)
}

// Skip is why a request cannot be put to this assignor: it then judges nothing.
type Skip string

func (s Skip) Error() string { return string(s) }

type request struct {
	Seq        int        `json:"seq"`
	Cmd        string     `json:"cmd"`
	Cluster    Cluster    `json:"cluster"`
	Members    []Member   `json:"members"`
	Owned      Partitions `json:"owned"`
	Generation int32      `json:"generation"`
}

type reply struct {
	Seq     int      `json:"seq"`
	Result  any      `json:"result,omitempty"`
	Skipped *refusal `json:"skipped,omitempty"`
	Errored *refusal `json:"errored,omitempty"`
}

type refusal struct {
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

// Serve answers the requests on stdin until bye, or its end.
func Serve(target Target) {
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
		if err := out.Encode(answer(target, asked)); err != nil {
			log.Fatal(err)
		}
	}
}

func answer(target Target, asked request) (found reply) {
	found.Seq = asked.Seq
	defer func() {
		if trouble := recover(); trouble != nil {
			found = reply{Seq: asked.Seq, Errored: &refusal{fmt.Sprint("panic: ", trouble), string(debug.Stack())}}
		}
	}()
	var err error
	switch asked.Cmd {
	case "hello":
		found.Result = target.Hello()
	case "assign":
		found.Result, err = target.Assign(asked.Cluster, asked.Members)
	case "user_data":
		var data []byte
		data, err = target.UserData(asked.Owned, asked.Generation)
		found.Result = map[string]Bytes{"user_data": data}
	default:
		err = fmt.Errorf("unknown request %q", asked.Cmd)
	}
	var skip Skip
	switch {
	case errors.As(err, &skip):
		return reply{Seq: asked.Seq, Skipped: &refusal{Message: string(skip)}}
	case err != nil:
		return reply{Seq: asked.Seq, Errored: &refusal{Message: err.Error()}}
	}
	return found
}

// Version is that of a library in this program, from its build information.
func Version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return dependency.Version[1:] // without the v
			}
		}
	}
	return "unknown"
}
