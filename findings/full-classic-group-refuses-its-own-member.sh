#!/bin/sh
# Kafka 4.4.0, Java clients 4.4.0: a full group of the classic protocol refuses its own static member.
#
# Guess before the run: a static member that is closed and started again keeps its place, in a group with as many
# members as the broker allows too (KIP-345). So both protocols take it back at once.
# Seen: a group of the consumer protocol does (KAFKA-20601). One of the classic protocol refuses the member with
# GROUP_MAX_SIZE_REACHED, and its poll throws, until the session of the closed process has ended.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kill $members 2>/dev/null || true; kafka_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
members='' KAFKA_PID=''
. "$here/lib/broker.sh"
kafka_start "$work" group.max.size=1 group.consumer.max.size=1
cat >"$work/Member.java" <<'JAVA'
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Member {
    public static void main(String[] args) {
        var bytes = new ByteArrayDeserializer();
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", args[0], "group.id", args[1], "group.protocol", args[1], "group.instance.id", "one");
        var member = new KafkaConsumer<byte[], byte[]>(settings, bytes, bytes);
        member.subscribe(List.of("t"));
        long end = System.currentTimeMillis() + 20_000;
        while (member.assignment().isEmpty() && System.currentTimeMillis() < end) {
            try {
                member.poll(Duration.ofMillis(200));
            } catch (RuntimeException error) {
                System.out.println(args[1] + ", " + args[2] + ": " + error.getClass().getSimpleName());
                Runtime.getRuntime().halt(0);
            }
        }
        System.out.println(args[1] + ", " + args[2] + ": has " + member.assignment());
        member.close();
    }
}
JAVA
javac -cp "$JARS" -d "$work" "$work/Member.java"
tool TopicCommand --bootstrap-server "$KAFKA" --create --topic t --partitions 1 >/dev/null
for group in consumer classic; do
    for time in first again; do
        timeout 60 java -Xmx128m -cp "$work:$JARS" Member "$KAFKA" $group $time 2>/dev/null
    done
done >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
consumer, first: has [t-0]
consumer, again: has [t-0]
classic, first: has [t-0]
classic, again: GroupMaxSizeReachedException
TEXT
diff "$work/expected" "$work/seen"
