#!/bin/sh
# confluent-kafka 2.16.1 (librdkafka 2.16.0) on Kafka 4.4.0: a live share group is described as a dead classic one.
#
# Guess before the run: describe_consumer_groups() of a share group with a member ends with the error
# GROUP_ID_NOT_FOUND, as Kafka's own admin client does; list_consumer_groups() has it with an unknown type.
# Seen: no error. The description is that of a group which was never there: DEAD, CLASSIC, no members. The list leaves
# it out. Only a commit tells the two apart: it is refused for the share group. A consumer group of the consumer
# protocol is described rightly, as guessed. Kafka's own tool reports that the group "is not a consumer group".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kill $members 2>/dev/null || true; kafka_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
members='' KAFKA_PID=''
. "$here/lib/broker.sh"
python3 -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check confluent-kafka==2.16.1
kafka_start "$work"
cat >"$work/Member.java" <<'JAVA'
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Member {
    public static void main(String[] args) {
        var bytes = new ByteArrayDeserializer();
        if (args[1].equals("shared")) {
            Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "group.id", args[1]);
            var member = new KafkaShareConsumer<byte[], byte[]>(settings, bytes, bytes);
            member.subscribe(List.of("t"));
            while (true) member.poll(Duration.ofMillis(200));
        }
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "group.id", args[1], "group.protocol", "consumer");
        var member = new KafkaConsumer<byte[], byte[]>(settings, bytes, bytes);
        member.subscribe(List.of("t"));
        while (true) member.poll(Duration.ofMillis(200));
    }
}
JAVA
javac -cp "$JARS" -d "$work" "$work/Member.java"
tool TopicCommand --bootstrap-server "$KAFKA" --create --topic t --partitions 1 >/dev/null
for group in live shared; do
    timeout 300 java -Xmx128m -cp "$work:$JARS" Member "$KAFKA" $group >/dev/null 2>&1 &
    members="$members $!"
done
for group in live shared; do
    tries=0
    until tool GroupsCommand --bootstrap-server "$KAFKA" --list | grep -q "^$group "; do
        tries=$((tries + 1))
        [ $tries -lt 20 ] || exit 1
    done
done
cat >"$work/ask.py" <<'PYTHON'
import sys

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

admin = AdminClient({"bootstrap.servers": sys.argv[1]})
listed = admin.list_consumer_groups().result().valid
print("listed:", sorted((group.group_id, group.type.name) for group in listed))
for group in ("live", "shared", "nobody"):
    described = admin.describe_consumer_groups([group])[group].result()
    print(f"{group}: {described.state.name}, {described.type.name}, members: {len(described.members)}")
for group in ("shared", "nobody"):
    commit = ConsumerGroupTopicPartitions(group, [TopicPartition("t", 0, 0)])
    (partition,) = admin.alter_consumer_group_offsets([commit])[group].result().topic_partitions
    print(f"{group}: a commit is", "refused, " + partition.error.name() if partition.error else "taken")
PYTHON
{
    timeout 60 "$work/env/bin/python" "$work/ask.py" "$KAFKA"
    tool consumer.group.ConsumerGroupCommand --bootstrap-server "$KAFKA" --describe --group shared |
        sed -nE 's/^Error: .*(GroupIdNotFoundException: .*)/kafka-consumer-groups: \1/p'
} >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
listed: [('live', 'CONSUMER')]
live: STABLE, CONSUMER, members: 1
shared: DEAD, CLASSIC, members: 0
nobody: DEAD, CLASSIC, members: 0
shared: a commit is refused, GROUP_ID_NOT_FOUND
nobody: a commit is taken
kafka-consumer-groups: GroupIdNotFoundException: Group shared is not a consumer group.
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
