import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.StreamsMember;
import org.apache.kafka.streams.processor.internals.StreamsPartitionAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyTaskAssignor;

/**
 * The whole StreamsPartitionAssignor of a release behind {@link Bridge}, around the task assignor that
 * {@code task.assignor.class} names: a group of its instances is made for each question, one for each thread, and
 * rebalances until nobody gives anything up. The answer is where everything is then. What the runtime refuses is an
 * exception, as is a group that does not come to rest.
 */
final class StreamsRuntime implements Function<Map<String, Object>, Map<String, Object>> {
    private static final int MOST_REBALANCES = 12;
    private static final String ASSIGNOR = "task.assignor.class";

    private final Map<String, Object> given;
    private final Class<?> type;
    private final List<String> promises;
    private final String protocol;
    private final Map<List<String>, StreamsMember.Shape> shapes = new HashMap<>();

    StreamsRuntime(Supplier<Object> made, List<String> promises, String protocol) {
        this.given = new HashMap<>(Bridge.CONFIGS);
        inside();
        this.type = StreamsPartitionAssignor.class;
        this.promises = promises;
        this.protocol = protocol;
    }

    /** One of Kafka's own that is not public has another setting. */
    private void inside() {
        Object name = given.get(ASSIGNOR);
        try {
            if (name != null && LegacyTaskAssignor.class.isAssignableFrom(Class.forName((String) name))) {
                given.remove(ASSIGNOR);
                given.put(StreamsConfig.InternalConfig.INTERNAL_TASK_ASSIGNOR_CLASS, name);
            }
        } catch (ClassNotFoundException error) {
            throw new IllegalArgumentException("no class " + name + " on the class path", error);
        }
    }

    @Override
    public Map<String, Object> apply(Map<String, Object> request) {
        switch ((String) request.get("cmd")) {
            case "hello":
                return Bridge.hello(type, type.getSimpleName(), "kafka-streams", protocol, promises);
            case "assign_tasks":
                try {
                    return new Group(request).settled();
                } catch (ReflectiveOperationException error) {
                    throw new IllegalStateException("not the inside of a Kafka Streams that is known: " + error, error);
                }
            default:
                throw new IllegalStateException("a task assignor is asked for tasks");
        }
    }

    /** The group of a request. */
    private final class Group {
        private final List<Map<String, Object>> subtopologies = new ArrayList<>();
        private final Map<String, Integer> numbers = new HashMap<>();
        private final Map<String, Long> ends = new HashMap<>();
        private final Map<String, String> processes = new HashMap<>(); // of members
        private final Map<String, StreamsMember> members = new TreeMap<>();
        private final List<String> topics = new ArrayList<>();
        private final Map<String, Object> config = new HashMap<>(given);
        private final Map<String, Set<TaskId>> assigned = new HashMap<>(); // standbys, without what only lies there
        private boolean unknownEnds;

        Group(Map<String, Object> request) throws ReflectiveOperationException {
            List<String> stores = new ArrayList<>();
            for (Object item : Bridge.list(request.get("subtopologies"))) {
                Map<String, Object> subtopology = Bridge.object(item);
                int number = subtopologies.size();
                numbers.put((String) subtopology.get("id"), number);
                subtopologies.add(subtopology);
                stores.add((String) subtopology.get("store"));
                topics.add(StreamsMember.topic(number));
                ends.put(StreamsMember.topic(number), (Long) subtopology.get("end"));
            }
            StreamsMember.Shape shape = shapes.get(stores);
            if (shape == null) {
                shapes.put(stores, shape = new StreamsMember.Shape(stores));
            }
            settings(Bridge.object(request.get("configs")));
            List<Map<String, Object>> clients = new ArrayList<>();
            for (Object item : Bridge.list(request.get("clients"))) {
                Map<String, Object> client = Bridge.object(item);
                clients.add(client);
                unknownEnds |= Bridge.object(client.get("lags")).containsValue(-3L);
            }
            for (Map<String, Object> client : clients) {
                join(client, shape);
            }
        }

        private void settings(Map<String, Object> configs) {
            List<String> tags = new ArrayList<>();
            Bridge.list(configs.get("tags")).forEach(tag -> tags.add((String) tag));
            config.put("num.standby.replicas", ((Long) configs.get("standbys")).intValue());
            config.put("max.warmup.replicas", Math.max(1, ((Long) configs.get("warmups")).intValue()));
            config.put("acceptable.recovery.lag", configs.get("recovery_lag"));
            config.put("rack.aware.assignment.tags", String.join(",", tags));
        }

        private void join(Map<String, Object> client, StreamsMember.Shape shape) throws ReflectiveOperationException {
            String name = (String) client.get("id");
            ProcessId process =
                new ProcessId(UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8)));
            Map<String, String> tags = new HashMap<>();
            Bridge.object(client.get("tags")).forEach((tag, value) -> tags.put(tag, (String) value));
            int threads = ((Long) client.get("threads")).intValue();
            List<StreamsMember> own = new ArrayList<>();
            for (int thread = 1; thread <= threads; thread++) {
                String id = name + "-StreamThread-" + thread + "-consumer";
                StreamsMember member = new StreamsMember(id, process, shape, config, tags,
                    Optional.ofNullable((String) client.get("rack")), unknownEnds ? null : ends);
                own.add(member);
                members.put(id, member);
                processes.put(id, name);
            }
            int turn = 0;
            for (TaskId task : tasks(client.get("active"))) {
                StreamsMember member = own.get(turn++ % threads);
                member.active.add(task);
                member.owned.add(partition(task));
            }
            Map<String, Object> lags = Bridge.object(client.get("lags"));
            for (TaskId task : tasks(client.get("standby"))) {
                if (logged(task)) {
                    long lag = Math.max(0, (Long) lags.getOrDefault(named(task), 0L));
                    own.get(turn++ % threads).standby.put(task, Math.max(0, end(task) - lag));
                }
            }
        }

        private long end(TaskId task) {
            return ends.get(StreamsMember.topic(task.subtopology()));
        }

        private List<TaskId> tasks(Object texts) {
            Set<TaskId> found = new TreeSet<>();
            for (Object text : Bridge.list(texts)) {
                String task = (String) text;
                int line = task.lastIndexOf('_');
                found.add(new TaskId(numbers.get(task.substring(0, line)), Integer.parseInt(task.substring(line + 1))));
            }
            return new ArrayList<>(found);
        }

        private TopicPartition partition(TaskId task) {
            return new TopicPartition(StreamsMember.topic(task.subtopology()), task.partition());
        }

        private String named(TaskId task) {
            return subtopologies.get(task.subtopology()).get("id") + "_" + task.partition();
        }

        /** Rebalance until nobody has anything to give up. */
        Map<String, Object> settled() {
            for (int number = 0; number < MOST_REBALANCES; number++) {
                Map<String, Subscription> joined = new HashMap<>();
                members.forEach((id, member) -> joined.put(id, member.subscription(topics)));
                Map<String, StreamsMember.Told> told = members.values().iterator().next().lead(cluster(), joined);
                boolean again = false;
                boolean followup = false;
                for (StreamsMember member : members.values()) {
                    StreamsMember.Told own = told.get(member.id);
                    if (own.info.errCode() != 0) {
                        throw new IllegalStateException(
                            "the runtime ends all threads: assignment error " + own.info.errCode());
                    }
                    again |= !own.partitions.containsAll(member.owned) || own.due(true);
                    followup |= own.due(false);
                }
                processes.values().stream().distinct().forEach(process -> learn(process, told));
                if (!again) {
                    return answer(followup);
                }
            }
            throw new IllegalStateException("tasks still change owner after " + MOST_REBALANCES + " rebalances in a row");
        }

        /** Let the threads of a process do as they are told. They share a disk; what nobody locks the first reports. */
        private void learn(String process, Map<String, StreamsMember.Told> told) {
            List<StreamsMember> threads = members.values().stream()
                .filter(member -> processes.get(member.id).equals(process)).collect(Collectors.toList());
            Map<TaskId, Long> disk = new TreeMap<>();
            for (StreamsMember member : threads) {
                disk.putAll(member.standby);
                member.active.stream().filter(this::logged).forEach(task -> disk.put(task, end(task)));
            }
            Set<TaskId> locked = new HashSet<>();
            for (StreamsMember member : threads) {
                StreamsMember.Told own = told.get(member.id);
                member.active.clear();
                member.active.addAll(own.info.activeTasks());
                member.owned.clear();
                member.owned.addAll(own.partitions);
                member.standby.clear();
                Set<TaskId> kept = new TreeSet<>(own.info.standbyTasks().keySet());
                kept.forEach(task -> member.standby.put(task, disk.getOrDefault(task, 0L)));
                assigned.put(member.id, kept);
                locked.addAll(member.active);
                locked.addAll(kept);
            }
            disk.keySet().removeAll(locked);
            threads.get(0).standby.putAll(disk);
        }

        private boolean logged(TaskId task) {
            return subtopologies.get(task.subtopology()).get("store").equals("logged");
        }

        private Map<String, Object> answer(boolean followup) {
            Map<String, List<Set<String>>> found = new TreeMap<>();
            members.forEach((id, member) -> {
                List<Set<String>> tasks =
                    found.computeIfAbsent(processes.get(id), key -> List.of(new TreeSet<>(), new TreeSet<>()));
                member.active.forEach(task -> tasks.get(0).add(named(task)));
                assigned.get(id).forEach(task -> tasks.get(1).add(named(task)));
            });
            List<Object> clients = new ArrayList<>();
            found.forEach((name, tasks) -> {
                Map<String, Object> written = new LinkedHashMap<>();
                written.put("id", name);
                written.put("active", new ArrayList<>(tasks.get(0)));
                written.put("standby", new ArrayList<>(tasks.get(1)));
                clients.add(written);
            });
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("clients", clients);
            result.put("followup", followup);
            return result;
        }

        private Cluster cluster() {
            Map<String, Node> nodes = new LinkedHashMap<>();
            List<PartitionInfo> all = new ArrayList<>();
            for (int number = 0; number < subtopologies.size(); number++) {
                int index = 0;
                for (Object racks : Bridge.list(subtopologies.get(number).get("racks"))) {
                    Set<String> here = new LinkedHashSet<>();
                    Bridge.list(racks).forEach(rack -> here.add((String) rack));
                    if (here.isEmpty()) {
                        here.add("");
                    }
                    Node[] replicas = here.stream().map(rack -> nodes.computeIfAbsent(rack, key ->
                        new Node(nodes.size(), "h", 1, key.isEmpty() ? null : key))).toArray(Node[]::new);
                    all.add(new PartitionInfo(topics.get(number), index++, replicas[0], replicas, replicas));
                }
            }
            Collection<Node> known = nodes.values();
            return new Cluster("c", known, all, Set.of(), Set.of());
        }
    }
}
