#!/bin/sh
# kafkajs 2.2.4 on Kafka 4.4.0: admin.resetOffsets() of a live group of the consumer protocol joins it and resets nothing.
#
# kafkajs resets by joining the group, if it has no running instances. Guess before the run: it takes such a group for
# a dead one, joins, resets the partitions that it is given, the others not, and reports success.
# Seen: it joins, and the member that works loses half of its partitions to it for a moment. Not one offset is reset;
# the promise is fulfilled. A live classic group is refused, as kafkajs means it to be.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kill $member 2>/dev/null || true; kafka_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
member='' KAFKA_PID=''
. "$here/lib/broker.sh"
cd "$work"
echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts kafkajs@2.2.4 >npm.log 2>&1 || { cat npm.log; exit 1; }
cat >reset.cjs <<'JAVASCRIPT'
const { Kafka, logLevel } = require('kafkajs');
const [broker, groupId, topic] = process.argv.slice(2);
(async () => {
  const admin = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    await admin.resetOffsets({ groupId, topic, earliest: true });
    console.log('  kafkajs: fulfilled');
  } catch (error) {
    console.log('  kafkajs:', error.message);
  }
  await admin.disconnect();
})();
JAVASCRIPT
cat >Member.java <<'JAVA'
import java.time.Duration;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;

public class Member {
    static int[] read = new int[2];

    static void tell(String what, Collection<TopicPartition> partitions) {
        if (partitions.isEmpty()) return;
        System.out.println("  member: " + what + " " + partitions.stream().map(p -> "" + p.partition()).sorted().toList());
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        try (var producer = new KafkaProducer<byte[], byte[]>(Map.of("bootstrap.servers", args[0]),
                new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < 20; i++) producer.send(new ProducerRecord<>(args[1], i % 2, null, new byte[1]));
        }
        var bytes = new ByteArrayDeserializer();
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "group.id", args[1], "group.protocol", args[2],
            "auto.offset.reset", "earliest", "auto.commit.interval.ms", "500");
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings, bytes, bytes)) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("  member: read " + Arrays.toString(read))));
            consumer.subscribe(List.of(args[1]), new ConsumerRebalanceListener() {
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    tell("revoked", partitions);
                }

                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    tell("assigned", partitions);
                }
            });
            while (true) for (var record : consumer.poll(Duration.ofMillis(200))) {
                read[record.partition()]++;
                if (read[0] + read[1] == 20) {
                    System.out.println("  member: read all");
                    System.out.flush();
                }
            }
        }
    }
}
JAVA
kafka_start "$work/broker"
javac -cp "$JARS" -d . Member.java
for protocol in classic consumer; do
    echo "group.protocol=$protocol"
    tool TopicCommand --bootstrap-server "$KAFKA" --create --topic $protocol --partitions 2 >/dev/null
    timeout 200 java -cp "$work:$JARS" Member "$KAFKA" $protocol $protocol >member.log 2>/dev/null &
    member=$!
    tries=0
    until grep -q "read all" member.log; do
        tries=$((tries + 1))
        [ $tries -lt 120 ] || exit 1
        sleep 0.5
    done
    sleep 2
    timeout 60 node reset.cjs "$KAFKA" $protocol $protocol >reset.log
    sleep 12
    kill $member
    wait $member || true
    cat reset.log member.log
    tool consumer.group.ConsumerGroupCommand --bootstrap-server "$KAFKA" --describe --offsets --group $protocol |
        awk -v group=$protocol '$1 == group { print "  partition " $3 ": committed " $4 ", end " $5 }' | sort
done >seen
cat seen
cat >"$work/expected" <<'TEXT'
group.protocol=classic
  kafkajs: The consumer group must have no running instances, current state: Stable
  member: assigned [0, 1]
  member: read all
  member: read [10, 10]
  partition 0: committed 10, end 10
  partition 1: committed 10, end 10
group.protocol=consumer
  kafkajs: fulfilled
  member: assigned [0, 1]
  member: read all
  member: revoked [1]
  member: assigned [1]
  member: read [10, 10]
  partition 0: committed 10, end 10
  partition 1: committed 10, end 10
TEXT
diff expected seen && echo "as seen before"
