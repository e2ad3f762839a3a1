package org.apache.kafka.streams.processor.internals;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.ReferenceContainer;
import org.apache.kafka.streams.state.Stores;

/**
 * A thread of a Streams application, as far as StreamsPartitionAssignor looks at it: no broker, no stores. Admin and
 * consumer are proxies that know end offsets. A source topic is read as a table whose topic is its own changelog, so
 * that no internal topic has to be made.
 */
public final class StreamsMember {
    public final String id;
    public final List<TopicPartition> owned = new ArrayList<>();
    public final Set<TaskId> active = new HashSet<>();
    public final Map<TaskId, Long> standby = new HashMap<>();
    private final StreamsPartitionAssignor assignor = new StreamsPartitionAssignor();
    private final ReferenceContainer container = new ReferenceContainer();
    private final Optional<String> rack;

    /** What an assignment tells a member. */
    public static final class Told {
        public final AssignmentInfo info;
        public final List<TopicPartition> partitions;

        Told(Assignment assignment) {
            info = AssignmentInfo.decode(assignment.userData());
            partitions = assignment.partitions();
        }

        /** Whether another rebalance is due at once, or (only where it is not) after a while. */
        public boolean due(boolean atOnce) {
            return atOnce ? info.nextRebalanceMs() == 0 : info.nextRebalanceMs() != Long.MAX_VALUE;
        }
    }

    /** The topology of an application, which its threads share. */
    public static final class Shape {
        private final TopologyMetadata metadata;
        private final List<String> stores;

        /** For each subtopology what its tasks keep: none, logged or memory. Its topic is in-NUMBER. */
        public Shape(List<String> stores) throws ReflectiveOperationException {
            this.stores = stores;
            StreamsBuilder builder = new StreamsBuilder();
            for (int number = 0; number < stores.size(); number++) {
                String topic = topic(number);
                String store = "store-" + number;
                switch (stores.get(number)) {
                    case "none":
                        builder.stream(topic).foreach((key, value) -> { });
                        break;
                    case "logged":
                        builder.table(topic, Materialized.as(Stores.inMemoryKeyValueStore(store)));
                        break;
                    default:
                        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(store),
                            Serdes.ByteArray(), Serdes.ByteArray()).withLoggingDisabled());
                        builder.stream(topic).process(Nothing::new, store);
                }
            }
            Properties plain = new Properties();
            plain.putAll(usual());
            Topology topology = builder.build(plain);
            Field field = Topology.class.getDeclaredField("internalTopologyBuilder");
            field.setAccessible(true);
            InternalTopologyBuilder inside = (InternalTopologyBuilder) field.get(topology);
            inside.setApplicationId("app");
            metadata = new TopologyMetadata(inside, new StreamsConfig(usual()));
            metadata.buildAndRewriteTopology();
        }
    }

    private static final class Nothing extends ContextualProcessor<Object, Object, Void, Void> {
        @Override
        public void process(Record<Object, Object> record) { }
    }

    public static String topic(int subtopology) {
        return "in-" + subtopology;
    }

    private static Map<String, Object> usual() {
        Map<String, Object> found = new HashMap<>();
        found.put("application.id", "app");
        found.put("bootstrap.servers", "localhost:1");
        found.put("client.id", "c");
        found.put("topology.optimization", "all");
        return found;
    }

    /** Of a process: ends of topics, null where they cannot be fetched. */
    public StreamsMember(String id, ProcessId process, Shape shape, Map<String, Object> config, Map<String, String> tags,
            Optional<String> rack, Map<String, Long> ends) throws ReflectiveOperationException {
        this.id = id;
        this.rack = rack;
        container.time = Time.SYSTEM;
        container.clientTags = tags;
        container.streamsMetadataState = state(shape.metadata);
        container.adminClient = proxy(Admin.class, (name, argument) ->
            name.equals("listOffsets") ? new ListOffsetsResult(new HashMap<>()) : null);
        container.mainConsumer = consumer(ends);
        container.taskManager = new TaskManager(Time.SYSTEM, null, process, "", null, null, null, shape.metadata,
                container.adminClient, null, null, null) {
            public Map<TaskId, Long> getTaskOffsetSums() { // its name until 3.9
                return taskOffsetSums();
            }

            public Map<TaskId, Long> taskOffsetSums() {
                Map<TaskId, Long> sums = new HashMap<>(standby);
                active.stream().filter(task -> shape.stores.get(task.subtopology()).equals("logged"))
                    .forEach(task -> sums.put(task, Task.LATEST_OFFSET));
                return sums;
            }

            @Override
            void handleRebalanceStart(Set<String> topics) { }

            @Override
            public void handleAssignment(
                Map<TaskId, Set<TopicPartition>> active, Map<TaskId, Set<TopicPartition>> standby) { }
        };
        Map<String, Object> own = usual();
        own.putAll(config);
        tags.forEach((tag, value) -> own.put("client.tag." + tag, value));
        own.put(StreamsConfig.InternalConfig.REFERENCE_CONTAINER_PARTITION_ASSIGNOR, container);
        assignor.configure(own);
    }

    private interface Call {
        Object made(String name, Object argument);
    }

    private static <T> T proxy(Class<T> type, Call call) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
            (self, method, arguments) -> call.made(method.getName(), arguments == null ? null : arguments[0])));
    }

    @SuppressWarnings("unchecked")
    private static Consumer<byte[], byte[]> consumer(Map<String, Long> ends) {
        return (Consumer<byte[], byte[]>) proxy(Consumer.class, (name, argument) -> {
            if (!name.equals("committed")) {
                return null;
            }
            if (ends == null) {
                throw new TimeoutException("end offsets cannot be fetched");
            }
            Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
            ((Set<TopicPartition>) argument).forEach(partition ->
                found.put(partition, new OffsetAndMetadata(ends.get(partition.topic()))));
            return found;
        });
    }

    /** Its constructor took a String until 4.3, takes a LogContext since. */
    private static StreamsMetadataState state(TopologyMetadata metadata) throws ReflectiveOperationException {
        Constructor<?> made = StreamsMetadataState.class.getDeclaredConstructors()[0];
        made.setAccessible(true);
        Class<?> last = made.getParameterTypes()[2];
        return (StreamsMetadataState) made.newInstance(metadata, StreamsMetadataState.UNKNOWN_HOST,
            last == String.class ? "" : last.getConstructor().newInstance());
    }

    public StreamsPartitionAssignor assignor() {
        return assignor;
    }

    /** Tell it its assignment; whether it wants another rebalance. */
    public boolean take(Assignment assignment) {
        container.nextScheduledRebalanceMs.set(Long.MAX_VALUE);
        assignor.onAssignment(assignment, null);
        return container.nextScheduledRebalanceMs.get() != Long.MAX_VALUE;
    }

    /** What it sends with JoinGroup. */
    public Subscription subscription(Collection<String> topics) {
        return new Subscription(new ArrayList<>(topics), assignor.subscriptionUserData(new HashSet<>(topics)),
            new ArrayList<>(owned), -1, rack);
    }

    /** What each member is told when this one leads. */
    public Map<String, Told> lead(Cluster cluster, Map<String, Subscription> members) {
        Map<String, Told> found = new HashMap<>();
        assignor.assign(cluster, new GroupSubscription(members)).groupAssignment()
            .forEach((member, assignment) -> found.put(member, new Told(assignment)));
        return found;
    }
}
