import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignor;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskInfo;
import org.apache.kafka.streams.processor.internals.assignment.LegacyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;
import org.apache.kafka.streams.state.HostInfo;

/**
 * A task assignor of Kafka Streams (KIP-924) behind {@link Bridge}, or an internal one. As in StreamsPartitionAssignor
 * an instance is made for each assignment. Tasks are in Kafka's own containers: DefaultTaskInfo has neither equals nor
 * hashCode, so that a set of them is iterated in any order. Processes get ids that follow from their names.
 */
final class StreamsTasks implements Function<Map<String, Object>, Map<String, Object>> {
    private static final int TRAFFIC_COST = 10;
    private static final int NON_OVERLAP_COST = 1;
    private static final long PROBING_MILLIS = 600_000L;

    private final Supplier<Object> made;
    private final List<String> promises;
    private final String protocol;
    /** Of the requests before: most are about the same few tasks and processes. */
    private final Map<String, TaskId> ids = new HashMap<>();
    private final Map<String, ProcessId> processes = new HashMap<>();
    /** By how they are written: each one made copies the definition of StreamsConfig, which took a third of all time. */
    private final Map<Map<String, Object>, AssignmentConfigs> settings = new HashMap<>();

    StreamsTasks(Supplier<Object> made, List<String> promises, String protocol) {
        this.made = made;
        this.promises = promises;
        this.protocol = protocol;
    }

    @Override
    public Map<String, Object> apply(Map<String, Object> request) {
        switch ((String) request.get("cmd")) {
            case "hello":
                Class<?> type = made.get().getClass();
                return Bridge.hello(type, type.getSimpleName(), "kafka-streams", protocol, promises);
            case "assign_tasks":
                return assign(request);
            default:
                throw new IllegalStateException("a task assignor is asked for tasks");
        }
    }

    private Map<String, Object> assign(Map<String, Object> request) {
        Object assignor = made.get();
        AssignmentConfigs configs = settingsOf(Bridge.object(request.get("configs")));
        List<Task> tasks = tasks(Bridge.list(request.get("subtopologies")));
        Map<String, String> names = new HashMap<>(); // of processes, by their ids
        List<Process> known = new ArrayList<>();
        for (Object item : Bridge.list(request.get("clients"))) {
            Process process = new Process(Bridge.object(item));
            names.put(process.id.toString(), process.name);
            known.add(process);
        }
        known.sort(Comparator.comparing(process -> process.name)); // how the request is ordered decides nothing
        return assignor instanceof TaskAssignor
            ? ask((TaskAssignor) assignor, configs, tasks, known, names)
            : ask((LegacyTaskAssignor) assignor, configs, tasks, known, names);
    }

    private static Map<String, Object> ask(TaskAssignor assignor, AssignmentConfigs configs, List<Task> tasks,
            List<Process> known, Map<String, String> names) {
        Map<TaskId, TaskInfo> all = new HashMap<>();
        tasks.forEach(task -> all.put(task.id, task.info()));
        Map<ProcessId, KafkaStreamsState> withLags = new HashMap<>();
        Map<ProcessId, KafkaStreamsState> without = new HashMap<>();
        for (Process process : known) {
            withLags.put(process.id, process.state(true));
            without.put(process.id, process.state(false));
        }
        TaskAssignor.TaskAssignment answer = assignor.assign(new ApplicationState() {
            @Override
            public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
                return Collections.unmodifiableMap(computeTaskLags ? withLags : without);
            }

            @Override
            public AssignmentConfigs assignmentConfigs() {
                return configs;
            }

            @Override
            public Map<TaskId, TaskInfo> allTasks() {
                return Collections.unmodifiableMap(all);
            }
        });
        if (answer == null || answer.assignment() == null) {
            throw new Bridge.Garbage("assign returned " + answer);
        }
        List<Object> clients = new ArrayList<>();
        boolean followup = false;
        for (KafkaStreamsAssignment one : answer.assignment()) {
            if (one == null) {
                throw new Bridge.Garbage("assign returned an assignment of null");
            }
            Set<TaskId> active = new TreeSet<>();
            Set<TaskId> standby = new TreeSet<>();
            for (AssignedTask task : one.tasks().values()) {
                (task.type() == AssignedTask.Type.ACTIVE ? active : standby).add(task.id());
            }
            clients.add(written(named(one.processId(), names), active, standby));
            followup |= one.followupRebalanceDeadline().isPresent();
        }
        return answered(clients, followup);
    }

    private static Map<String, Object> ask(LegacyTaskAssignor assignor, AssignmentConfigs configs, List<Task> tasks,
            List<Process> known, Map<String, String> names) {
        Map<ProcessId, ClientState> states = new HashMap<>();
        for (Process process : known) {
            states.put(process.id, new ClientState(process.active, process.standby, process.lags, process.tags,
                process.threads, process.id));
        }
        Set<TaskId> all = new HashSet<>();
        Set<TaskId> logged = new HashSet<>(); // which StreamsPartitionAssignor calls stateful here
        Map<TaskId, Set<TopicPartition>> sources = new HashMap<>();
        Map<TaskId, Set<TopicPartition>> changelogs = new HashMap<>();
        for (Task task : tasks) {
            all.add(task.id);
            if (task.logged) {
                logged.add(task.id);
            }
            sources.put(task.id, Set.of(task.source()));
            changelogs.put(task.id, task.logged ? Set.of(task.changelog()) : Set.of());
        }
        RackAwareTaskAssignor racks = new RackAwareTaskAssignor(Cluster.empty(), sources, changelogs, new HashMap<>(),
            new HashMap<>(), null, configs, Time.SYSTEM);
        boolean followup = assignor.assign(states, all, logged, racks, configs);
        List<Object> clients = new ArrayList<>();
        states.forEach((id, state) ->
            clients.add(written(named(id, names), state.activeTasks(), state.standbyTasks())));
        return answered(clients, followup);
    }

    private static Map<String, Object> answered(List<Object> clients, boolean followup) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("clients", clients);
        result.put("followup", followup);
        return result;
    }

    private static Map<String, Object> written(String client, Set<TaskId> active, Set<TaskId> standby) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("id", client);
        found.put("active", strings(active));
        found.put("standby", strings(standby));
        return found;
    }

    private static List<Object> strings(Set<TaskId> tasks) {
        List<Object> found = new ArrayList<>();
        new TreeSet<>(tasks).forEach(task -> found.add(task.toString()));
        return found;
    }

    private static String named(ProcessId id, Map<String, String> names) {
        return names.getOrDefault(String.valueOf(id), String.valueOf(id));
    }

    /** Those with tags are made anew: an assignor may change a list. */
    private AssignmentConfigs settingsOf(Map<String, Object> given) {
        return Bridge.list(given.get("tags")).isEmpty()
            ? settings.computeIfAbsent(given, StreamsTasks::configs)
            : configs(given);
    }

    private static AssignmentConfigs configs(Map<String, Object> given) {
        List<String> tags = new ArrayList<>();
        Bridge.list(given.get("tags")).forEach(tag -> tags.add((String) tag));
        String strategy = (String) given.get("rack_strategy");
        boolean racks = !strategy.equals("none"); // without costs TaskAssignmentUtils leaves racks alone
        return new AssignmentConfigs((Long) given.get("recovery_lag"), ((Long) given.get("warmups")).intValue(),
            ((Long) given.get("standbys")).intValue(), PROBING_MILLIS, tags,
            racks ? OptionalInt.of(TRAFFIC_COST) : OptionalInt.empty(),
            racks ? OptionalInt.of(NON_OVERLAP_COST) : OptionalInt.empty(), strategy);
    }

    private List<Task> tasks(List<Object> subtopologies) {
        List<Task> found = new ArrayList<>();
        for (Object item : subtopologies) {
            Map<String, Object> subtopology = Bridge.object(item);
            String id = (String) subtopology.get("id");
            String topic = (String) subtopology.getOrDefault("topic", "in-" + id);
            int index = 0;
            for (Object racks : Bridge.list(subtopology.get("racks"))) {
                found.add(new Task(id, topic, index++, (String) subtopology.get("store"), Bridge.list(racks)));
            }
        }
        return found;
    }

    private TaskId task(String text) {
        return ids.computeIfAbsent(text, TaskId::parse);
    }

    private SortedSet<TaskId> tasksOf(Object texts) {
        SortedSet<TaskId> found = new TreeSet<>();
        Bridge.list(texts).forEach(text -> found.add(task((String) text)));
        return found;
    }

    /** A task that reads one partition, and writes one of a changelog if it has any. */
    private final class Task {
        private final TaskId id;
        private final String topic;
        private final boolean stateful;
        private final boolean logged;
        private final Optional<Set<String>> racks;

        Task(String subtopology, String topic, int partition, String store, List<Object> racks) {
            id = task(subtopology + "_" + partition);
            this.topic = topic;
            stateful = !store.equals("none");
            logged = store.equals("logged");
            Set<String> here = new HashSet<>();
            racks.forEach(rack -> here.add((String) rack));
            this.racks = here.isEmpty() ? Optional.empty() : Optional.of(here);
        }

        TopicPartition source() {
            return new TopicPartition(topic, id.partition());
        }

        TopicPartition changelog() {
            return new TopicPartition("log-" + id.subtopology(), id.partition());
        }

        TaskInfo info() {
            Set<TaskTopicPartition> partitions = new HashSet<>();
            partitions.add(new Partition(source(), false, racks));
            if (logged) {
                partitions.add(new Partition(changelog(), true, racks));
            }
            Set<String> stores = stateful ? Set.of("store-" + id.subtopology()) : Set.of();
            return new DefaultTaskInfo(id, stateful, stores, partitions);
        }
    }

    private static final class Partition implements TaskTopicPartition {
        private final TopicPartition partition;
        private final boolean changelog;
        private final Optional<Set<String>> racks;

        Partition(TopicPartition partition, boolean changelog, Optional<Set<String>> racks) {
            this.partition = partition;
            this.changelog = changelog;
            this.racks = racks;
        }

        @Override
        public TopicPartition topicPartition() {
            return partition;
        }

        @Override
        public boolean isSource() {
            return !changelog;
        }

        @Override
        public boolean isChangelog() {
            return changelog;
        }

        @Override
        public Optional<Set<String>> rackIds() {
            return racks;
        }
    }

    /** A process of the request: what runs there, what is on its disk and how far behind. */
    private final class Process {
        private final String name;
        private final ProcessId id;
        private final int threads;
        private final SortedSet<TaskId> active;
        private final SortedSet<TaskId> standby;
        private final Map<TaskId, Long> lags = new TreeMap<>();
        private final Map<String, String> tags = new HashMap<>();
        private final Optional<String> rack;

        Process(Map<String, Object> given) {
            name = (String) given.get("id");
            id = processes.computeIfAbsent(name, key ->
                new ProcessId(UUID.nameUUIDFromBytes(key.getBytes(StandardCharsets.UTF_8))));
            threads = ((Long) given.get("threads")).intValue();
            active = tasksOf(given.get("active"));
            standby = tasksOf(given.get("standby"));
            Bridge.object(given.get("lags")).forEach((task, lag) -> lags.put(task(task), (Long) lag));
            Bridge.object(given.get("tags")).forEach((tag, value) -> tags.put(tag, (String) value));
            rack = Optional.ofNullable((String) given.get("rack"));
        }

        KafkaStreamsState state(boolean withLags) {
            return new State(this, withLags);
        }
    }

    private static final class State implements KafkaStreamsState {
        private final Process process;
        private final boolean withLags;

        State(Process process, boolean withLags) {
            this.process = process;
            this.withLags = withLags;
        }

        @Override
        public ProcessId processId() {
            return process.id;
        }

        @Override
        public int numProcessingThreads() {
            return process.threads;
        }

        @Override
        public SortedSet<String> consumerClientIds() {
            SortedSet<String> found = new TreeSet<>();
            for (int thread = 1; thread <= process.threads; thread++) {
                found.add(consumer(thread));
            }
            return found;
        }

        private String consumer(int thread) {
            return process.name + "-StreamThread-" + thread + "-consumer";
        }

        @Override
        public SortedSet<TaskId> previousActiveTasks() {
            return Collections.unmodifiableSortedSet(process.active);
        }

        @Override
        public SortedSet<TaskId> previousStandbyTasks() {
            return Collections.unmodifiableSortedSet(process.standby);
        }

        private Map<TaskId, Long> lags() {
            if (!withLags) {
                throw new UnsupportedOperationException("Lag computation was not requested for KafkaStreams with process "
                    + process.id);
            }
            return process.lags;
        }

        @Override
        public long lagFor(TaskId task) {
            Long lag = lags().get(task);
            if (lag == null) {
                throw new IllegalStateException("Tried to lookup lag for unknown task " + task);
            }
            return lag;
        }

        /** Of the tasks that were there, those of one thread: they are dealt out in turn. */
        @Override
        public SortedSet<TaskId> prevTasksByLag(String consumerClientId) {
            SortedSet<TaskId> found = new TreeSet<>(Comparator.comparingLong(this::lagFor).thenComparing(task -> task));
            SortedSet<TaskId> here = new TreeSet<>(process.active);
            here.addAll(process.standby);
            int number = 0;
            for (TaskId task : here) {
                if (lags().containsKey(task) && consumer(1 + number++ % process.threads).equals(consumerClientId)) {
                    found.add(task);
                }
            }
            return found;
        }

        @Override
        public Map<TaskId, Long> statefulTasksToLagSums() {
            return new HashMap<>(lags());
        }

        @Override
        public Optional<HostInfo> hostInfo() {
            return Optional.empty();
        }

        @Override
        public Map<String, String> clientTags() {
            return Collections.unmodifiableMap(process.tags);
        }

        @Override
        public Optional<String> rackId() {
            return process.rack;
        }
    }
}
