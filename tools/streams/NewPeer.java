package org.apache.kafka.streams.processor.internals;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.RebalanceProtocol;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/** A member of an application of a newer Kafka Streams, with {@code upgrade.from} or without. */
public final class NewPeer implements Peer {
    private final StreamsMember member;

    public NewPeer(String id, String upgradeFrom) throws Exception {
        Map<String, Object> config = new HashMap<>();
        if (!upgradeFrom.isEmpty()) {
            config.put("upgrade.from", upgradeFrom);
        }
        member = new StreamsMember(id, new ProcessId(UUID.nameUUIDFromBytes(id.getBytes())),
            new StreamsMember.Shape(List.of("none")), config, Map.of(), Optional.empty(), Map.of());
    }

    @Override
    public boolean cooperative() {
        return member.assignor().supportedProtocols().contains(RebalanceProtocol.COOPERATIVE);
    }

    @Override
    public ByteBuffer userData(List<TopicPartition> owned) {
        member.owned.clear();
        member.owned.addAll(owned);
        return member.subscription(List.of("in-0")).userData();
    }

    @Override
    public Map<String, Held> lead(Cluster cluster, Map<String, Held> members) {
        Map<String, Subscription> known = new HashMap<>();
        members.forEach((id, joined) ->
            known.put(id, new Subscription(List.of("in-0"), joined.userData, joined.partitions)));
        Map<String, Held> found = new HashMap<>();
        member.assignor().assign(cluster, new GroupSubscription(known)).groupAssignment().forEach((id, given) ->
            found.put(id, new Held(new ArrayList<>(given.partitions()), given.userData())));
        return found;
    }

    @Override
    public boolean take(List<TopicPartition> partitions, ByteBuffer userData) {
        member.active.clear();
        partitions.forEach(partition -> member.active.add(new TaskId(0, partition.partition())));
        return member.take(new Assignment(partitions, userData));
    }
}
