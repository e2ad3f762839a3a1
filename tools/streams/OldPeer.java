package org.apache.kafka.streams.processor.internals;

import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.internals.PartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.HostInfo;

/** A member of an application of Kafka Streams 2.3: EAGER alone, by the interface that the client had then. */
public final class OldPeer implements Peer {
    private final StreamsPartitionAssignor assignor = new StreamsPartitionAssignor();
    private final Set<TaskId> active = new HashSet<>();

    public OldPeer(String id, String upgradeFrom) throws Exception {
        StreamsBuilder streams = new StreamsBuilder();
        streams.stream("in-0").foreach((key, value) -> { });
        Properties plain = new Properties();
        plain.put("application.id", "app");
        plain.put("bootstrap.servers", "localhost:1");
        plain.put("client.id", "c");
        Topology topology = streams.build(plain);
        Field field = Topology.class.getDeclaredField("internalTopologyBuilder");
        field.setAccessible(true);
        InternalTopologyBuilder builder = (InternalTopologyBuilder) field.get(topology);
        builder.rewriteTopology(new StreamsConfig(plain));
        builder.setApplicationId("app");
        UUID process = UUID.nameUUIDFromBytes(id.getBytes());
        TaskManager manager = new TaskManager(null, process, "", null, null, null, null, null, null, null) {
            @Override
            public Set<TaskId> prevActiveTaskIds() {
                return new HashSet<>(active);
            }

            @Override
            public Set<TaskId> cachedTasksIds() {
                return new HashSet<>(active);
            }

            @Override
            public UUID processId() {
                return process;
            }

            @Override
            InternalTopologyBuilder builder() {
                return builder;
            }

            @Override
            public void setPartitionsByHostState(Map<HostInfo, Set<TopicPartition>> state) { }

            @Override
            public void setClusterMetadata(Cluster cluster) { }

            @Override
            public void updateSubscriptionsFromMetadata(Set<String> topics) { }
        };
        Map<String, Object> config = new HashMap<>();
        plain.forEach((key, value) -> config.put((String) key, value));
        config.put(StreamsConfig.InternalConfig.TASK_MANAGER_FOR_PARTITION_ASSIGNOR, manager);
        config.put(StreamsConfig.InternalConfig.ASSIGNMENT_ERROR_CODE, new AtomicInteger());
        assignor.configure(config);
    }

    @Override
    public boolean cooperative() {
        return false;
    }

    @Override
    public ByteBuffer userData(List<TopicPartition> owned) {
        return assignor.subscription(new HashSet<>(List.of("in-0"))).userData();
    }

    @Override
    public Map<String, Held> lead(Cluster cluster, Map<String, Held> members) {
        Map<String, PartitionAssignor.Subscription> known = new HashMap<>();
        members.forEach((id, member) ->
            known.put(id, new PartitionAssignor.Subscription(List.of("in-0"), member.userData)));
        Map<String, Held> found = new HashMap<>();
        assignor.assign(cluster, known).forEach((id, given) ->
            found.put(id, new Held(new ArrayList<>(given.partitions()), given.userData())));
        return found;
    }

    @Override
    public boolean take(List<TopicPartition> partitions, ByteBuffer userData) {
        active.clear();
        partitions.forEach(partition -> active.add(new TaskId(0, partition.partition())));
        return false;
    }
}
