import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * What the harnesses for task assignors of a broker have in common: requests and answers as maps of subtopologies to
 * partitions, as both interfaces have them. A broker has one instance. Maps are by hash, as there.
 */
abstract class GroupTasks implements Function<Map<String, Object>, Map<String, Object>> {
    private final List<String> promises;
    private final String protocol;

    GroupTasks(List<String> promises, String protocol) {
        this.promises = promises;
        this.protocol = protocol;
    }

    /** The assignor. */
    abstract Object assignor();

    /** What it calls itself. */
    abstract String name();

    /** What it gives each member: active tasks and standbys. */
    abstract Map<String, List<Map<String, Set<Integer>>>> ask(Group group) throws Exception;

    @Override
    public Map<String, Object> apply(Map<String, Object> request) {
        switch ((String) request.get("cmd")) {
            case "hello":
                return Bridge.hello(assignor().getClass(), name(), "kafka-group-coordinator-api", protocol, promises);
            case "assign_tasks":
                return assign(request);
            default:
                throw new IllegalStateException("a task assignor is asked for tasks");
        }
    }

    private Map<String, Object> assign(Map<String, Object> request) {
        Map<String, List<Map<String, Set<Integer>>>> found;
        try {
            found = ask(new Group(request));
        } catch (RuntimeException error) {
            throw error;
        } catch (Exception error) {
            throw new Failed(error);
        }
        List<Object> clients = new ArrayList<>();
        new TreeMap<>(found).forEach((member, tasks) -> {
            Map<String, Object> written = new LinkedHashMap<>();
            written.put("id", member);
            written.put("active", strings(tasks.get(0)));
            written.put("standby", strings(tasks.get(1)));
            clients.add(written);
        });
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("clients", clients);
        return result;
    }

    private static List<Object> strings(Map<String, Set<Integer>> tasks) {
        List<Object> found = new ArrayList<>();
        new TreeMap<>(tasks).forEach((subtopology, partitions) ->
            new TreeSet<>(partitions).forEach(partition -> found.add(subtopology + "_" + partition)));
        return found;
    }

    /** A checked exception of the assignor, told as itself. */
    static final class Failed extends RuntimeException {
        private final String text;

        Failed(Exception cause) {
            super(cause);
            text = cause.toString();
        }

        @Override
        public String toString() {
            return text;
        }
    }

    /** The group of a request. */
    static final class Group {
        final Map<String, Member> members = new HashMap<>();
        final int standbys;
        final List<String> tags = new ArrayList<>();
        private final Map<String, Map<String, Object>> topology = new LinkedHashMap<>();

        Group(Map<String, Object> request) {
            Map<String, Object> configs = Bridge.object(request.get("configs"));
            standbys = ((Long) configs.get("standbys")).intValue();
            Bridge.list(configs.get("tags")).forEach(tag -> tags.add((String) tag));
            for (Object item : Bridge.list(request.get("subtopologies"))) {
                Map<String, Object> subtopology = Bridge.object(item);
                topology.put((String) subtopology.get("id"), subtopology);
            }
            Map<String, Member> sorted = new TreeMap<>(); // how the request is ordered decides nothing
            for (Object item : Bridge.list(request.get("clients"))) {
                Member member = new Member(Bridge.object(item), topology);
                sorted.put(member.id, member);
            }
            members.putAll(sorted);
        }

        List<String> subtopologies() {
            return new ArrayList<>(topology.keySet());
        }

        int partitions(String subtopology) {
            if (!topology.containsKey(subtopology)) {
                throw new NoSuchElementException("There is no subtopology " + subtopology);
            }
            return ((Collection<?>) topology.get(subtopology).get("racks")).size();
        }

        boolean isStateful(String subtopology) {
            partitions(subtopology);
            return topology.get(subtopology).get("store").equals("logged");
        }
    }

    /** A member of it, and what it was assigned before. */
    static final class Member {
        final String id;
        final String process;
        final String rack;
        final Map<String, String> tags = new HashMap<>();
        final Map<String, Set<Integer>> active;
        final Map<String, Set<Integer>> standby;
        /** How far each copy on its disk has come, and how far it would have to. */
        final Map<String, Map<Integer, Long>> offsets = new HashMap<>();
        final Map<String, Map<Integer, Long>> ends = new HashMap<>();

        Member(Map<String, Object> given, Map<String, Map<String, Object>> topology) {
            id = (String) given.get("id");
            process = (String) given.get("process");
            rack = (String) given.get("rack");
            Bridge.object(given.get("tags")).forEach((tag, value) -> tags.put(tag, (String) value));
            active = tasks(given.get("active"));
            standby = tasks(given.get("standby"));
            Bridge.object(given.get("lags")).forEach((task, lag) -> {
                String subtopology = task.substring(0, task.lastIndexOf('_'));
                int partition = Integer.parseInt(task.substring(task.lastIndexOf('_') + 1));
                long end = (Long) topology.get(subtopology).get("end");
                ends.computeIfAbsent(subtopology, key -> new HashMap<>()).put(partition, end);
                offsets.computeIfAbsent(subtopology, key -> new HashMap<>())
                    .put(partition, Math.max(0, end - (Long) lag));
            });
        }

        private static Map<String, Set<Integer>> tasks(Object texts) {
            Map<String, Set<Integer>> found = new HashMap<>();
            for (Object text : Bridge.list(texts)) {
                String task = (String) text;
                int line = task.lastIndexOf('_');
                found.computeIfAbsent(task.substring(0, line), key -> new HashSet<>())
                    .add(Integer.valueOf(task.substring(line + 1)));
            }
            return found;
        }
    }

    /** An answer as maps, which nothing of it may be null for. */
    static <T> Map<String, List<Map<String, Set<Integer>>>> collected(Object answer, Map<String, T> members,
            Function<T, Map<String, Set<Integer>>> active, Function<T, Map<String, Set<Integer>>> standby) {
        if (members == null) {
            throw new Bridge.Garbage("assign returned " + answer);
        }
        Map<String, List<Map<String, Set<Integer>>>> found = new HashMap<>();
        members.forEach((member, own) -> {
            if (member == null || own == null) {
                throw new Bridge.Garbage("assign returned an assignment of " + own + " for the member " + member);
            }
            found.put(member, List.of(given(active.apply(own), member), given(standby.apply(own), member)));
        });
        return found;
    }

    /** Of one of the maps of Kafka that an answer is made of, which must not be null. */
    static Map<String, Set<Integer>> given(Map<String, Set<Integer>> tasks, String member) {
        if (tasks == null) {
            throw new Bridge.Garbage("assign returned no tasks for " + member);
        }
        return tasks;
    }

    /** For a subclass that is given one to keep. */
    static <T> T kept(Supplier<Object> made, Class<T> type) {
        return type.cast(made.get());
    }
}
