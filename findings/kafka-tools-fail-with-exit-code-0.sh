#!/bin/sh
# kafka-tools 4.4.0: kafka-consumer-groups and its siblings refuse, say "Error:", and exit with 0.
#
# Guess before the run: what cannot be described, reset or deleted ends with exit code 1, in all three tools alike.
# Seen: kafka-consumer-groups (ConsumerGroupCommand) exits 0 for every refusal that we tried, kafka-share-groups with
# 1 for a reset and 0 for the others, kafka-streams-groups with 1 for a group that is not there. `set -e` and a job's
# step go on. And a dry run of a reset prints its plan for a live share group, which --execute refuses.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kill $members 2>/dev/null || true; kafka_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
members='' KAFKA_PID=''
. "$here/lib/broker.sh"
kafka_start "$work"
cat >"$work/Member.java" <<'JAVA'
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Member {
    public static void main(String[] args) {
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "group.id", args[1]);
        var bytes = new ByteArrayDeserializer();
        if (args[1].equals("shared")) {
            var member = new KafkaShareConsumer<byte[], byte[]>(settings, bytes, bytes);
            member.subscribe(List.of("t"));
            while (true) member.poll(Duration.ofMillis(200));
        }
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
asked() {
    class=$1
    shift
    code=0
    tool "$class" --bootstrap-server "$KAFKA" "$@" >"$work/out" || code=$?
    echo "$class $*: exit code $code"
    cat "$work/out" "$work/tool.err" | grep -E '^(Error|Share group|\* |[a-z]+ +t )' | sed -E 's/org\.apache[^ ]*\.//; s/ +$//' || true
}
{
    asked consumer.group.ConsumerGroupCommand --describe --group nobody
    asked consumer.group.ConsumerGroupCommand --delete --group live
    asked consumer.group.ConsumerGroupCommand --reset-offsets --to-earliest --topic t --execute --group live
    asked consumer.group.ConsumerGroupCommand --reset-offsets --to-earliest --topic t --dry-run --group shared
    asked consumer.group.ConsumerGroupCommand --reset-offsets --to-earliest --topic t --execute --group shared
    asked consumer.group.ShareGroupCommand --describe --group nobody
    asked consumer.group.ShareGroupCommand --delete --group shared
    asked consumer.group.ShareGroupCommand --reset-offsets --to-earliest --topic t --execute --group shared
    asked streams.StreamsGroupCommand --describe --group nobody
} >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
consumer.group.ConsumerGroupCommand --describe --group nobody: exit code 0
Error: Executing consumer group command failed due to GroupIdNotFoundException: Group nobody not found.
consumer.group.ConsumerGroupCommand --delete --group live: exit code 0
Error: Deletion of some consumer groups failed:
* Group 'live' could not be deleted due to: GroupNotEmptyException: The group is not empty.
consumer.group.ConsumerGroupCommand --reset-offsets --to-earliest --topic t --execute --group live: exit code 0
Error: Assignments can only be reset if the group 'live' is inactive, but the current state is Stable.
consumer.group.ConsumerGroupCommand --reset-offsets --to-earliest --topic t --dry-run --group shared: exit code 0
shared          t               0          0
consumer.group.ConsumerGroupCommand --reset-offsets --to-earliest --topic t --execute --group shared: exit code 0
Error: Executing consumer group command failed due to Failed altering group offsets for the following partitions: [t-0]
consumer.group.ShareGroupCommand --describe --group nobody: exit code 0
Error: Executing share group command failed due to GroupIdNotFoundException: Group nobody not found.
consumer.group.ShareGroupCommand --delete --group shared: exit code 0
Error: Deletion of some share groups failed:
* Group 'shared' could not be deleted due to: GroupNotEmptyException: Share group 'shared' is not EMPTY.
consumer.group.ShareGroupCommand --reset-offsets --to-earliest --topic t --execute --group shared: exit code 1
Share group 'shared' is not empty.
streams.StreamsGroupCommand --describe --group nobody: exit code 1
Error: Executing streams group command failed due to GroupIdNotFoundException: Group nobody not found.
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
