package acme;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/** A server-side assignor of a user: all of a topic to the first subscriber, and what its configuration asks for. */
public class Shared implements ConsumerGroupPartitionAssignor, Configurable {
    private String mode = "";

    @Override
    public void configure(Map<String, ?> configs) {
        mode = String.valueOf(configs.get("mode"));
    }

    @Override
    public String name() {
        return "shared";
    }

    @Override
    public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
        if (mode.equals("show")) {
            throw new IllegalStateException(shown(group, topics));
        }
        Map<String, MemberAssignment> found = new HashMap<>();
        Set<Uuid> done = new HashSet<>();
        for (String member : new TreeSet<>((Collection<String>) group.memberIds())) {
            Map<Uuid, Set<Integer>> own = new HashMap<>();
            for (Uuid topic : group.memberSubscription(member).subscribedTopicIds()) {
                if (done.add(topic) || mode.equals("twice")) {
                    Set<Integer> indexes = new HashSet<>();
                    for (int i = 0; i < topics.numPartitions(topic); i++) {
                        indexes.add(i);
                    }
                    own.put(topic, indexes);
                }
            }
            if (mode.equals("keep")) { // what is no longer subscribed, too
                group.memberAssignment(member).partitions().forEach(own::putIfAbsent);
            }
            if (mode.equals("mutate")) {
                group.memberAssignment(member).partitions().values().forEach(Set::clear);
            }
            found.put(member, () -> own);
        }
        return new GroupAssignment(mode.equals("null") ? null : found);
    }

    private static String shown(GroupSpec group, SubscribedTopicDescriber topics) {
        StringBuilder text = new StringBuilder(group.subscriptionType().toString());
        for (String member : new TreeSet<>((Collection<String>) group.memberIds())) {
            text.append(' ').append(member).append(group.memberSubscription(member).instanceId().orElse("-"))
                .append(group.memberSubscription(member).rackId().orElse("-"));
            TreeSet<String> parts = new TreeSet<>();
            for (Uuid topic : group.memberSubscription(member).subscribedTopicIds()) {
                Set<Integer> held = group.memberAssignment(member).partitions().getOrDefault(topic, Set.of());
                parts.add(topics.numPartitions(topic) + " of which " + new TreeSet<>(held) + " in "
                    + topics.racksForPartition(topic, 0) + group.isPartitionAssigned(topic, 0));
            }
            text.append(parts).append(group.memberAssignment(member).partitions().size());
        }
        return text.toString();
    }
}
