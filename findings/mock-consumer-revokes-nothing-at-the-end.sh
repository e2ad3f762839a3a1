#!/bin/sh
# kafka-clients 4.4.0: MockConsumer, with which listeners are tested, keeps less of a listener's contract than it seems.
#
# Guess before the run: it does as a KafkaConsumer with a cooperative assignor: callbacks tell the difference,
# unsubscribe() and close() revoke what is left, a partition that went and came back begins unpaused.
# Seen: callbacks do tell the difference. But unsubscribe() and close() call no listener, so a listener that commits
# when partitions are revoked is never seen failing there. A partition that comes back is still paused. rebalance()
# gives a partition of a topic that nobody subscribed to. A real KafkaConsumer (javadoc of ConsumerRebalanceListener)
# calls onPartitionsRevoked in close() and in unsubscribe().
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$here/lib/broker.sh"
jars "$work/jars" kafka-clients:4.4.0
cat >"$work/Play.java" <<'JAVA'
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;

public class Play {
    static TopicPartition at(String topic, int partition) {
        return new TopicPartition(topic, partition);
    }

    static MockConsumer<byte[], byte[]> subscribed() {
        var consumer = new MockConsumer<byte[], byte[]>("earliest");
        consumer.updateBeginningOffsets(Map.of(at("t", 0), 0L, at("t", 1), 0L, at("t", 2), 0L, at("other", 0), 0L));
        consumer.subscribe(List.of("t"), new ConsumerRebalanceListener() {
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                System.out.println("  revoked " + partitions);
            }

            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                System.out.println("  assigned " + partitions);
            }

            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                System.out.println("  lost " + partitions);
            }
        });
        return consumer;
    }

    public static void main(String[] args) {
        var consumer = subscribed();
        System.out.println("given t-0 and t-1");
        consumer.rebalance(List.of(at("t", 0), at("t", 1)));
        System.out.println("then t-0 and t-2");
        consumer.rebalance(List.of(at("t", 0), at("t", 2)));
        System.out.println("unsubscribe");
        consumer.unsubscribe();
        System.out.println("  assignment " + consumer.assignment());
        consumer = subscribed();
        System.out.println("given t-0, pausing it, taking it, giving it");
        consumer.rebalance(List.of(at("t", 0)));
        consumer.pause(List.of(at("t", 0)));
        consumer.rebalance(List.of());
        consumer.rebalance(List.of(at("t", 0)));
        System.out.println("  paused " + consumer.paused());
        System.out.println("given other-0, subscribed to " + consumer.subscription());
        consumer.rebalance(List.of(at("other", 0)));
        System.out.println("close");
        consumer.close();
        System.out.println("  closed " + consumer.closed());
    }
}
JAVA
timeout 60 java -cp "$work/jars/*" "$work/Play.java" >"$work/seen" 2>/dev/null
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
given t-0 and t-1
  assigned [t-0, t-1]
then t-0 and t-2
  revoked [t-1]
  assigned [t-2]
unsubscribe
  assignment []
given t-0, pausing it, taking it, giving it
  assigned [t-0]
  revoked [t-0]
  assigned []
  assigned [t-0]
  paused [t-0]
given other-0, subscribed to [t]
  revoked [t-0]
  assigned [other-0]
close
  closed true
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
