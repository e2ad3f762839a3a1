#!/bin/sh
# Kafka 4.4.0, Java clients 4.4.0: a member that changes to a pattern that matches nothing keeps partitions from others.
#
# Guess before the run: two members of the consumer protocol share a topic. One changes to a topic that there is not,
# from a name to another, or from a pattern to another (SubscriptionPattern). Either way the other member gets both partitions.
# Seen: by name it does. By pattern it does not: the coordinator waits for the pattern to be resolved, finds nothing,
# and takes that for no change. The target keeps the partition for the member that gave it up, and nobody reads it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kafka_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
KAFKA_PID=''
. "$here/lib/broker.sh"
kafka_start "$work"
cat >"$work/Members.java" <<'JAVA'
import java.time.Duration;
import java.util.*;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Members {
    static KafkaConsumer<byte[], byte[]> member(String broker, String group) {
        var bytes = new ByteArrayDeserializer();
        return new KafkaConsumer<>(Map.of("bootstrap.servers", broker, "group.id", group, "group.protocol", "consumer",
            "allow.auto.create.topics", "false"), bytes, bytes);
    }

    public static void main(String[] args) {
        for (String how : List.of("name", "pattern")) {
            var first = member(args[0], how);
            var second = member(args[0], how);
            boolean named = how.equals("name");
            if (named) {
                first.subscribe(List.of("t"));
            } else {
                first.subscribe(new SubscriptionPattern("t"));
            }
            second.subscribe(List.of("t"));
            polls(first, second, () -> first.assignment().size() == 1 && second.assignment().size() == 1);
            if (named) {
                first.subscribe(List.of("none"));
            } else {
                first.subscribe(new SubscriptionPattern("none"));
            }
            polls(first, second, () -> second.assignment().size() == 2);
            System.out.println("by " + how + ": " + first.assignment().size() + " and " + second.assignment().size()
                + " of 2 partitions");
            first.close();
            second.close();
        }
    }

    static void polls(KafkaConsumer<?, ?> first, KafkaConsumer<?, ?> second, BooleanSupplier done) {
        long end = System.currentTimeMillis() + 40_000; // a pattern is resolved ten seconds after another at the latest
        while (!done.getAsBoolean() && System.currentTimeMillis() < end) {
            first.poll(Duration.ofMillis(200));
            second.poll(Duration.ofMillis(200));
        }
    }
}
JAVA
javac -cp "$JARS" -d "$work" "$work/Members.java"
tool TopicCommand --bootstrap-server "$KAFKA" --create --topic t --partitions 2 >/dev/null
timeout 240 java -Xmx128m -cp "$work:$JARS" Members "$KAFKA" >"$work/seen" 2>/dev/null
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
by name: 0 and 2 of 2 partitions
by pattern: 0 and 1 of 2 partitions
TEXT
diff "$work/expected" "$work/seen"
