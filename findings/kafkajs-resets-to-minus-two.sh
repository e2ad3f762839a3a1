#!/bin/sh
# kafkajs 2.2.4: admin.resetOffsets({earliest: true}) commits the offset -2, and clients disagree about what that is.
#
# Guess before the run (auto.offset.reset=latest): Java, kafka-python, aiokafka begin at the end; librdkafka, franz-go,
# sarama, kafka-go and kafkajs at the beginning, since -2 is their own name for it.
# Seen: only librdkafka (both protocols) reads from the beginning. For all others -2 is "no offset", for a consumer of
# kafkajs itself too: with the policy `latest` a group that was reset to its earliest offsets begins at the END and
# skips all 10 records. Kafka's own tool shows "-" as its offset and lag, kadm of franz-go a lag of 10.
# Clients: Java 4.4.0, confluent-kafka 2.16.1, kafka-python 3.0.12, aiokafka 0.14.0, franz-go 1.22.3 with kadm 1.20.0,
# sarama 1.61.1, kafka-go 0.4.51. Each reads with the policy `earliest`, too: all read 10 then.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kafka_stop; chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
KAFKA_PID=''
. "$here/lib/broker.sh"
cd "$work"
echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts kafkajs@2.2.4 >npm.log 2>&1 || { cat npm.log; exit 1; }
python3 -m venv env
env/bin/python -m pip install --quiet --disable-pip-version-check confluent-kafka==2.16.1 kafka-python==3.0.12 aiokafka==0.14.0

cat >reset.cjs <<'JAVASCRIPT'
const { Kafka, logLevel } = require('kafkajs');
const [broker, ...groups] = process.argv.slice(2);
(async () => {
  const admin = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  for (const groupId of groups) await admin.resetOffsets({ groupId, topic: 't', earliest: true });
  await admin.disconnect();
})();
JAVASCRIPT
cat >read.cjs <<'JAVASCRIPT'
const { Kafka, logLevel } = require('kafkajs');
const [broker, groupId, policy] = process.argv.slice(2);
(async () => {
  const consumer = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING }).consumer({ groupId });
  let read = 0;
  await consumer.connect();
  await consumer.subscribe({ topic: 't', fromBeginning: policy === 'earliest' });
  await consumer.run({ autoCommit: false, eachMessage: async () => { read += 1; } });
  await new Promise(done => setTimeout(done, 8000));
  await consumer.disconnect();
  console.log(`kafkajs, ${policy}: reads ${read}`);
})();
JAVASCRIPT
cat >Read.java <<'JAVA'
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Read {
    public static void main(String[] args) {
        var bytes = new ByteArrayDeserializer();
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "group.id", args[1], "auto.offset.reset",
            args[2], "group.protocol", args[3], "enable.auto.commit", "false");
        int read = 0;
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings, bytes, bytes)) {
            consumer.subscribe(List.of("t"));
            for (long end = System.currentTimeMillis() + 8000; System.currentTimeMillis() < end; )
                read += consumer.poll(Duration.ofMillis(200)).count();
        }
        System.out.println("Java, group.protocol=" + args[3] + ", " + args[2] + ": reads " + read);
    }
}
JAVA
cat >read.py <<'PYTHON'
import asyncio
import sys
import time

import aiokafka
import confluent_kafka
import kafka

broker, group, policy, client = sys.argv[1:]
end = time.time() + 8


def librdkafka(protocol):
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker, "group.id": group, "auto.offset.reset": policy,
                                         "enable.auto.commit": False, "group.protocol": protocol})
    consumer.subscribe(["t"])
    read = 0
    while time.time() < end:
        message = consumer.poll(0.2)
        read += message is not None and message.error() is None
    consumer.close()
    return read


def kafka_python():
    consumer = kafka.KafkaConsumer("t", bootstrap_servers=broker, group_id=group, auto_offset_reset=policy,
                                   enable_auto_commit=False)
    read = 0
    while time.time() < end:
        read += sum(map(len, consumer.poll(200).values()))
    consumer.close(autocommit=False)
    return read


async def aio():
    consumer = aiokafka.AIOKafkaConsumer("t", bootstrap_servers=broker, group_id=group, auto_offset_reset=policy,
                                         enable_auto_commit=False)
    await consumer.start()
    read = 0
    while time.time() < end:
        read += sum(map(len, (await consumer.getmany(timeout_ms=200)).values()))
    await consumer.stop()
    return read


reads = {"librdkafka": lambda: librdkafka("classic"), "librdkafka, group.protocol=consumer": lambda: librdkafka("consumer"),
         "kafka-python": kafka_python, "aiokafka": lambda: asyncio.run(aio())}
print(f"{client}, {policy}: reads {reads[client]()}")
PYTHON
mkdir go
cat >go/main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type counts struct{ read int }

func (*counts) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*counts) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (c *counts) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			_ = message
			c.read++
		case <-session.Context().Done():
			return nil
		}
	}
}

func main() {
	broker, group, policy, client := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	read, earliest := 0, policy == "earliest"
	switch client {
	case "kadm":
		plain, _ := kgo.NewClient(kgo.SeedBrokers(broker))
		lags, _ := kadm.NewClient(plain).Lag(ctx, group)
		lag := lags[group].Lag["t"][0]
		fmt.Printf("kadm: committed %d, lag %d\n", lag.Commit.At, lag.Lag)
		return
	case "franz-go":
		offset := kgo.NewOffset().AtEnd()
		if earliest {
			offset = kgo.NewOffset().AtStart()
		}
		member, _ := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumerGroup(group), kgo.ConsumeTopics("t"),
			kgo.ConsumeResetOffset(offset), kgo.DisableAutoCommit())
		for ctx.Err() == nil {
			fetches := member.PollFetches(ctx)
			read += fetches.NumRecords()
		}
		member.Close()
	case "sarama":
		config := sarama.NewConfig()
		config.Consumer.Offsets.AutoCommit.Enable = false
		if earliest {
			config.Consumer.Offsets.Initial = sarama.OffsetOldest
		}
		member, _ := sarama.NewConsumerGroup([]string{broker}, group, config)
		claims := &counts{}
		_ = member.Consume(ctx, []string{"t"}, claims)
		_ = member.Close()
		read = claims.read
	case "kafka-go":
		offset := kafkago.LastOffset
		if earliest {
			offset = kafkago.FirstOffset
		}
		member := kafkago.NewReader(kafkago.ReaderConfig{Brokers: []string{broker}, GroupID: group, Topic: "t",
			StartOffset: offset, MaxWait: 500 * time.Millisecond})
		for {
			if _, err := member.FetchMessage(ctx); err != nil {
				break
			}
			read++
		}
		_ = member.Close()
	}
	fmt.Printf("%s, %s: reads %d\n", client, policy, read)
}
GO
printf 'module play\n\ngo 1.24\n' >go/go.mod
(cd go && GOFLAGS=-mod=mod timeout 600 go get github.com/twmb/franz-go@v1.22.3 github.com/twmb/franz-go/pkg/kadm@v1.20.0 \
    github.com/IBM/sarama@v1.61.1 github.com/segmentio/kafka-go@v0.4.51 >go.log 2>&1 && timeout 600 go build -o read . >>go.log 2>&1) ||
    { cat go/go.log; exit 1; }

kafka_start "$work/broker"
tool TopicCommand --bootstrap-server "$KAFKA" --create --topic t --partitions 1 >/dev/null
seq 10 | tool ConsoleProducer --bootstrap-server "$KAFKA" --topic t >/dev/null
javac -cp "$JARS" -d . Read.java
timeout 60 node reset.cjs "$KAFKA" g
{
    tool consumer.group.ConsumerGroupCommand --bootstrap-server "$KAFKA" --describe --group g |
        awk '$1 == "g" { print "kafka-consumer-groups: offset " $4 ", end " $5 ", lag " $6 }'
    go/read "$KAFKA" g - kadm
    for policy in latest earliest; do
        for protocol in classic consumer; do
            timeout 60 java -cp "$work:$JARS" Read "$KAFKA" g $policy $protocol 2>/dev/null
        done
        for client in librdkafka "librdkafka, group.protocol=consumer" kafka-python aiokafka; do
            timeout 60 env/bin/python read.py "$KAFKA" g $policy "$client" 2>/dev/null
        done
        for client in franz-go sarama kafka-go; do
            timeout 60 go/read "$KAFKA" g $policy $client
        done
        timeout 60 node read.cjs "$KAFKA" g $policy
    done
} >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
kafka-consumer-groups: offset -, end 10, lag -
kadm: committed -2, lag 10
Java, group.protocol=classic, latest: reads 0
Java, group.protocol=consumer, latest: reads 0
librdkafka, latest: reads 10
librdkafka, group.protocol=consumer, latest: reads 10
kafka-python, latest: reads 0
aiokafka, latest: reads 0
franz-go, latest: reads 0
sarama, latest: reads 0
kafka-go, latest: reads 0
kafkajs, latest: reads 0
Java, group.protocol=classic, earliest: reads 10
Java, group.protocol=consumer, earliest: reads 10
librdkafka, earliest: reads 10
librdkafka, group.protocol=consumer, earliest: reads 10
kafka-python, earliest: reads 10
aiokafka, earliest: reads 10
franz-go, earliest: reads 10
sarama, earliest: reads 10
kafka-go, earliest: reads 10
kafkajs, earliest: reads 10
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
