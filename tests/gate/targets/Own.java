package acme;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** An assignor of a user: everything to the first member, and whatever its configuration asks for. */
public class Own implements ConsumerPartitionAssignor, Configurable {
    private String mode = "";
    private final StringBuilder told = new StringBuilder();
    private final List<byte[]> kept = new ArrayList<>();

    @Override
    public void configure(Map<String, ?> configs) {
        mode = String.valueOf(configs.get("mode"));
        if (mode.equals("refuse")) {
            throw new IllegalArgumentException("mode must not be refuse");
        }
    }

    @Override
    public String name() {
        return "own-" + mode;
    }

    @Override
    public short version() {
        return 7;
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        return ByteBuffer.wrap((told + "|" + new TreeSet<>(topics)).getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
        ByteBuffer data = assignment.userData();
        told.append(metadata.memberId()).append(metadata.generationId()).append(assignment.partitions())
            .append(data == null ? "" : StandardCharsets.UTF_8.decode(data.duplicate()).toString());
    }

    @Override
    public GroupAssignment assign(Cluster cluster, GroupSubscription subscriptions) {
        Map<String, Subscription> group = subscriptions.groupSubscription();
        switch (mode) {
            case "hang":
                while (true) {
                    kept.size();
                }
            case "heap":
                while (true) {
                    kept.add(new byte[1 << 20]);
                }
            case "exit":
                System.exit(7);
                break;
            case "deep":
                return assign(cluster, subscriptions);
            case "void":
                return new GroupAssignment(new HashMap<>(java.util.Collections.singletonMap("A", null)));
            case "mutate":
                group.values().iterator().next().ownedPartitions().clear();
                break;
            case "print":
                System.out.println("{\"seq\": 1, \"result\": {}}");
                break;
            case "throw":
                throw new IllegalStateException("no\nassignment");
            default:
        }
        Map<String, Assignment> result = new HashMap<>();
        for (String member : new TreeMap<>(group).keySet()) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : new TreeSet<>(cluster.topics())) {
                for (PartitionInfo info : cluster.partitionsForTopic(topic)) {
                    if (result.isEmpty()) {
                        partitions.add(new TopicPartition(topic, info.partition()));
                    }
                }
            }
            result.put(member, new Assignment(partitions, ByteBuffer.wrap("hi".getBytes(StandardCharsets.UTF_8))));
        }
        return new GroupAssignment(result);
    }
}
