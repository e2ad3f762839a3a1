import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * A Java assignor as a program that speaks the stdio protocol (protocol.schema.json).
 *
 * <pre>java -cp BRIDGE:JARS Bridge CLASS PROMISE,... HARNESS PROTOCOL INTERFACE OTHERS [KEY VALUE ...]</pre>
 *
 * HARNESS answers for an assignor that is no ConsumerPartitionAssignor: a class beside this one, made of a
 * supplier of new instances, the promises and the PROTOCOL. INTERFACE and OTHERS are told back.
 *
 * Compiled against whatever kafka-clients from 2.4 on is judged; what differs between the releases is asked
 * by reflection, what is no public API through KafkaInternals. Like ConsumerCoordinator it hands the assignor
 * what ConsumerProtocol reads of each member's bytes, in a HashMap, and answers with the bytes that
 * ConsumerProtocol writes. One instance leads; each member of a history has an instance of its own, which is
 * told of its assignments.
 */
public final class Bridge {
    private static final long GRACE_MILLIS = 2_000;
    private static final int MOST_FRAMES = 60;
    private static final int HISTORIES = 64;
    private static final int BUFFER = 1 << 16;
    private static final String BOOTSTRAP = "bootstrap.servers";
    private static final String LAGS = "lags";
    /** What a consumer hands on to its assignors, beside what the user gave. */
    private static final Map<String, Object> OF_A_CONSUMER = Map.of(
        "group.id", "rebalance",
        "client.id", "rebalance",
        "key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer",
        "value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
    /** What Kafka's own remember of their last assignment, and write. */
    private static final Map<String, List<String>> SOURCES = Map.of(
        "org.apache.kafka.clients.consumer.StickyAssignor", List.of("owned", "generation"),
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor", List.of("generation"));
    private static final Pattern OURS =
        Pattern.compile("(Bridge|ServerSide|StreamsTasks|StreamsRuntime|.*\\.StreamsMember|GroupTasks[0-9]*|KafkaInternals)(\\$.*)?"); // nested classes, lambdas

    /** The assignor returned something that is no assignment. */
    static final class Garbage extends RuntimeException {
        Garbage(String message) {
            super(message);
        }
    }

    /** Nothing the assignor did: it cannot be loaded, or the request is not known. */
    private static final class Refused extends RuntimeException {
        Refused(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** A history: the assignors of its leader and members, each told of its own assignments. */
    private static final class History {
        final ConsumerPartitionAssignor leader;
        final Map<String, Member> members = new HashMap<>();
        /** Per member the answers that carry user data for it, as bytes. */
        final Map<String, List<ByteBuffer>> withData = new HashMap<>();

        History(ConsumerPartitionAssignor leader) {
            this.leader = leader;
        }
    }

    /** A member's own assignor, and what it was last told. */
    private static final class Member {
        final ConsumerPartitionAssignor assignor;
        List<TopicPartition> owned = Collections.emptyList();
        long generation = -1;

        Member(ConsumerPartitionAssignor assignor) {
            this.assignor = assignor;
        }
    }

    private final String className;
    private final List<String> promises;
    private final String harness;
    private final String protocol;
    private final String judged;
    private final boolean lags;
    private final String others;
    /** What the user gave. */
    static final Map<String, Object> CONFIGS = new HashMap<>();
    private KafkaInternals.Codec codec;
    private Function<Map<String, Object>, Map<String, Object>> server; // of an assignor of a coordinator
    /** By number, the one that was asked last at the end; requests that belong to none share one. */
    private final Map<Object, History> histories = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Object, History> eldest) {
            return size() > HISTORIES;
        }
    };

    private Bridge(String[] arguments) {
        className = arguments[0];
        promises = arguments[1].isEmpty() ? List.of() : Arrays.asList(arguments[1].split(","));
        harness = arguments[2];
        protocol = arguments[3];
        judged = arguments[4];
        others = arguments[5];
        for (int index = 6; index < arguments.length; index += 2) { // a key may have any character in it
            CONFIGS.put(arguments[index], arguments[index + 1]);
        }
        lags = LAGS.equals(CONFIGS.get(BOOTSTRAP));
        if (lags) {
            CONFIGS.put(BOOTSTRAP, System.getenv("REBALANCE_BROKER"));
        }
    }

    public static void main(String[] arguments) throws Exception {
        OutputStream replies = new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), BUFFER);
        System.setOut(System.err); // what the assignor prints is a log
        LinkedBlockingQueue<List<String>> requests = new LinkedBlockingQueue<>();
        AtomicLong answered = new AtomicLong();
        Thread reader = new Thread(() -> read(requests, answered), "requests");
        reader.setDaemon(true);
        reader.start();
        Bridge bridge = new Bridge(arguments);
        StringBuilder out = new StringBuilder();
        for (List<String> lines = requests.take(); !lines.isEmpty(); lines = requests.take()) {
            for (String line : lines) {
                Map<String, Object> request = object(new Json(line).value());
                if (request.get("cmd").equals("bye")) {
                    replies.flush();
                    Runtime.getRuntime().halt(0); // whatever threads the assignor has left
                }
                Map<String, Object> reply = new LinkedHashMap<>();
                reply.put("seq", request.get("seq"));
                bridge.answer(request, reply);
                out.setLength(0);
                Json.write(reply, out);
                replies.write(out.append('\n').toString().getBytes(StandardCharsets.US_ASCII));
                answered.incrementAndGet();
            }
            replies.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /**
     * Queue the requests, those together that came together: their answers go together too. An empty list is the
     * end; when it is reached while the assignor hangs, end the process.
     */
    private static void read(LinkedBlockingQueue<List<String>> requests, AtomicLong answered) {
        try (BufferedReader in = new BufferedReader(
                new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8), BUFFER)) {
            List<String> lines = new ArrayList<>();
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                lines.add(line);
                if (!in.ready()) {
                    requests.add(lines);
                    lines = new ArrayList<>();
                }
            }
            requests.add(lines);
            requests.add(List.of());
            long before;
            do {
                before = answered.get();
                Thread.sleep(GRACE_MILLIS);
            } while (before != answered.get());
        } catch (Exception error) {
            error.printStackTrace();
        } finally {
            Runtime.getRuntime().halt(1);
        }
    }

    private void answer(Map<String, Object> request, Map<String, Object> reply) {
        try {
            reply.put("result", result(request));
        } catch (Garbage garbage) {
            reply.put("garbage", Map.of("message", garbage.getMessage()));
        } catch (Throwable error) { // errors included: of the heap, of the stack, of linking
            Throwable told = error instanceof Refused && error.getCause() != null ? error.getCause() : error;
            boolean ours = error instanceof Refused || error instanceof KafkaInternals.Missing;
            String message = ours ? error.getMessage() : String.valueOf(error);
            reply.remove("result");
            reply.put("errored", Map.of("message", firstLine(message), "traceback", trace(told)));
        }
    }

    private Map<String, Object> result(Map<String, Object> request) {
        if (request.get("cmd").equals("hello")) {
            server = harness.isEmpty() ? null : serverSide();
            Map<String, Object> hello =
                server != null ? server.apply(request) : hello((Long) request.getOrDefault("newest", 1L));
            hello.put("interface", judged);
            if (!others.isEmpty()) {
                hello.put("also", others);
            }
            return hello;
        }
        if (server != null) {
            return server.apply(request);
        }
        History history = histories.computeIfAbsent(request.get("history"), key -> new History(instance()));
        switch ((String) request.get("cmd")) {
            case "assign":
                return assign(request, history);
            case "user_data":
                return userData(request, history);
            default:
                throw new Refused("the bridge does not know the request " + request.get("cmd"), null);
        }
    }

    // --- hello -------------------------------------------------------------------------------------------

    private Map<String, Object> hello(long newest) {
        codec = new KafkaInternals.Codec();
        ConsumerPartitionAssignor leader = instance();
        Map<String, Object> hello = new LinkedHashMap<>();
        boolean kafkas = ofKafka(className);
        hello.put("name", leader.name());
        hello.put("version", kafkas ? KafkaInternals.version() : version(leader));
        hello.put("language", language(kafkas, "kafka-clients"));
        hello.put("protocols", leader.supportedProtocols().stream()
            .map(protocol -> protocol.name().toLowerCase(Locale.ROOT)).collect(Collectors.toList()));
        hello.put("promises", promises.stream()
            .filter(promise -> !promise.equals("rack-aware")
                || (kafkas ? KafkaInternals.assignorsKnowRacks() : racksKnown()))
            .collect(Collectors.toList()));
        hello.put("user_data", writesUserData());
        if (newest >= 2) {
            if (SOURCES.containsKey(className)) {
                hello.put("user_data_from", SOURCES.get(className));
            }
            hello.put("metadata_only", true);
            hello.put("histories", lags ? 1 : HISTORIES);
        }
        putPages(hello, kafkas);
        return hello;
    }

    /**
     * What a harness says of an assignor at first: Kafka's own has Kafka's version and pages; {@code library} is the
     * artifact with the interface of any other. {@code histories}: how many may be played at once.
     */
    static Map<String, Object> hello(
            Class<?> type, String name, String library, String protocol, List<String> promises) {
        boolean kafkas = ofKafka(type.getName());
        String own = type.getPackage().getImplementationVersion();
        Map<String, Object> hello = new LinkedHashMap<>();
        hello.put("name", name);
        hello.put("version", kafkas || own == null ? KafkaInternals.version() : own);
        hello.put("language", language(kafkas, library));
        hello.put("protocols", List.of(protocol));
        hello.put("promises", promises);
        hello.put("histories", HISTORIES);
        putPages(hello, kafkas);
        return hello;
    }

    private static boolean ofKafka(String className) {
        return className.startsWith("org.apache.kafka.");
    }

    private static String language(boolean kafkas, String library) {
        return "Java " + System.getProperty("java.version")
            + (kafkas ? "" : ", " + library + " " + KafkaInternals.version());
    }

    private static void putPages(Map<String, Object> hello, boolean kafkas) {
        if (kafkas) {
            hello.put("homepage", "https://kafka.apache.org");
            hello.put("issues", "https://issues.apache.org/jira/projects/KAFKA");
        }
    }

    /** Whether a leader is told of racks (KIP-881, 3.4). */
    private static boolean racksKnown() {
        return has(Subscription.class, "rackId");
    }

    private static String version(ConsumerPartitionAssignor leader) {
        String version = leader.getClass().getPackage().getImplementationVersion();
        return version != null ? version : String.valueOf(leader.version());
    }

    private boolean writesUserData() {
        TopicPartition partition = new TopicPartition("t", 0);
        ConsumerPartitionAssignor member = instance();
        if (member.subscriptionUserData(setOf("t")) != null) {
            return true;
        }
        member.onAssignment(new Assignment(List.of(partition)), group("A", 1));
        return member.subscriptionUserData(setOf("t")) != null;
    }

    private static HashSet<String> setOf(String... topics) {
        return new HashSet<>(Arrays.asList(topics));
    }

    private ConsumerPartitionAssignor instance() {
        Object made = made();
        if (made instanceof ConsumerPartitionAssignor) {
            return (ConsumerPartitionAssignor) made;
        }
        throw new Refused(className + " is no ConsumerPartitionAssignor", null);
    }

    /** What answers for an assignor that no consumer calls. */
    @SuppressWarnings("unchecked")
    private Function<Map<String, Object>, Map<String, Object>> serverSide() {
        try {
            Object side = Class.forName(harness).getDeclaredConstructor(Supplier.class, List.class, String.class)
                .newInstance((Supplier<Object>) this::made, promises, protocol);
            return (Function<Map<String, Object>, Map<String, Object>>) side;
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Refused) {
                throw (Refused) error.getCause();
            }
            throw new Refused(className + " cannot be made: " + error.getCause(), error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new Refused("the bridge has no " + harness + ": " + error, error);
        }
    }

    /** A new assignor, configured as by a consumer or a broker. */
    private Object made() {
        Object made;
        try {
            Class<?> type = Class.forName(className, true, Thread.currentThread().getContextClassLoader());
            if (Modifier.isAbstract(type.getModifiers())) {
                throw new Refused(className + " is abstract: name a class that can be made", null);
            }
            made = type.getDeclaredConstructor().newInstance();
        } catch (ClassNotFoundException error) {
            throw new Refused("no class " + className + " in " + jars(), error);
        } catch (NoSuchMethodException | IllegalAccessException error) {
            throw new Refused(className + " has no public constructor without arguments, which KafkaConsumer"
                + " needs too", error);
        } catch (ReflectiveOperationException error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            throw new Refused(className + " cannot be made: " + cause, cause);
        } catch (LinkageError error) {
            throw new Refused(className + " cannot be loaded: " + error + " in " + jars(), error);
        }
        if (made instanceof Configurable) {
            try {
                Map<String, Object> configs = new HashMap<>(OF_A_CONSUMER);
                configs.putAll(CONFIGS);
                ((Configurable) made).configure(configs);
            } catch (RuntimeException error) {
                throw new Refused(className + " does not take its configuration: " + error, error);
            }
        }
        return made;
    }

    private static String jars() {
        return Arrays.stream(System.getProperty("java.class.path").split(System.getProperty("path.separator")))
            .skip(1).map(path -> path.substring(path.lastIndexOf('/') + 1)).collect(Collectors.joining(" "));
    }

    // --- assign ------------------------------------------------------------------------------------------

    private Map<String, Object> assign(Map<String, Object> request, History history) {
        Cluster cluster = cluster(object(object(request.get("cluster")).get("topics")));
        Map<String, Subscription> group = new HashMap<>(); // as in ConsumerCoordinator
        Map<String, List<?>> before = new HashMap<>();
        for (Object item : list(request.get("members"))) {
            Map<String, Object> member = object(item);
            String id = (String) member.get("id");
            byte[] metadata = bytes((String) member.get("metadata"));
            Subscription subscription = codec.subscription(ByteBuffer.wrap(metadata));
            subscription.setGroupInstanceId(Optional.ofNullable((String) member.get("instance")));
            if (member.containsKey("topics")) {
                compare(member, subscription);
            }
            group.put(id, subscription);
            before.put(id, seen(subscription));
        }
        GroupSubscription subscriptions = new GroupSubscription(group);
        Map<String, Assignment> assignment = history.leader.assign(cluster, subscriptions).groupAssignment();
        if (assignment == null) {
            throw new Garbage("assign returned a GroupAssignment of null");
        }
        Map<String, Object> encoded = new LinkedHashMap<>();
        assignment.forEach((member, own) -> encoded.put(member, encode(member, own, history)));
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("encoded", encoded);
        String mutated = difference(before, group);
        if (mutated != null) {
            result.put("mutated", mutated);
        }
        return result;
    }

    private String encode(String member, Assignment own, History history) {
        if (member == null || own == null) {
            throw new Garbage("assign returned an assignment of " + own + " for the member " + member);
        }
        boolean carriesData = own.userData() != null;
        ByteBuffer bytes = codec.bytes(own); // which uses the user data up
        if (carriesData) {
            history.withData.computeIfAbsent(member, key -> new ArrayList<>()).add(bytes);
        }
        return hex(bytes);
    }

    /** What the leader knows of the brokers; a replica that is in a rack is on a broker of that rack. */
    private static Cluster cluster(Map<String, Object> topics) {
        Map<String, Node> nodes = new LinkedHashMap<>();
        nodes.put("", new Node(0, "localhost", 9092));
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.forEach((topic, racksOfAll) -> {
            int index = 0;
            for (Object racks : list(racksOfAll)) {
                Node[] replicas = list(racks).stream().map(rack -> nodes.computeIfAbsent("r" + rack,
                    key -> new Node(nodes.size(), "localhost", 9092, (String) rack))).toArray(Node[]::new);
                replicas = replicas.length > 0 ? replicas : new Node[] {nodes.get("")};
                partitions.add(new PartitionInfo(topic, index++, replicas[0], replicas, replicas));
            }
        });
        return new Cluster("rebalance", nodes.values(), partitions, setOf(), setOf());
    }

    /** The request says everything twice, in JSON and in bytes: Java has to read the same in the bytes. */
    private static void compare(Map<String, Object> member, Subscription read) {
        long version = (Long) member.get("version");
        agree(member, "topics", sorted(list(member.get("topics"))), sorted(read.topics()));
        ByteBuffer userData = read.userData();
        agree(member, "user_data", member.get("user_data"), userData == null ? null : hex(userData));
        if (version >= 1) {
            agree(member, "owned", sorted(partitions(member.get("owned"))), sorted(read.ownedPartitions()));
        }
        if (version >= 2 && has(Subscription.class, "generationId")) {
            long generation = get(read, "generationId").map(value -> ((Integer) value).longValue()).orElse(-1L);
            agree(member, "generation", member.get("generation"), generation);
        }
        if (version >= 3 && racksKnown()) {
            agree(member, "rack", member.get("rack"), get(read, "rackId").orElse(null));
        }
    }

    private static void agree(Map<String, Object> member, String field, Object said, Object read) {
        if (!Objects.equals(said, read)) {
            throw new Garbage("the request says that " + field + " of " + member.get("id") + " is " + said
                + ", and Java reads " + read + " in its metadata " + member.get("metadata"));
        }
    }

    private static List<String> sorted(List<?> values) {
        return values.stream().map(String::valueOf).sorted().collect(Collectors.toList());
    }

    private static List<?> seen(Subscription subscription) {
        ByteBuffer data = subscription.userData();
        return Arrays.asList(new ArrayList<>(subscription.topics()),
            new ArrayList<>(subscription.ownedPartitions()), data == null ? null : (Object) data.duplicate().rewind(),
            subscription.groupInstanceId());
    }

    /** What the assignor has changed in its input, in words; null if nothing. */
    private static String difference(Map<String, List<?>> before, Map<String, Subscription> after) {
        if (!before.keySet().equals(after.keySet())) {
            return "members were " + before.keySet() + ", became " + after.keySet();
        }
        for (Map.Entry<String, List<?>> entry : before.entrySet()) {
            List<?> now = seen(after.get(entry.getKey()));
            if (!now.equals(entry.getValue())) {
                return "subscription of " + entry.getKey() + " was " + entry.getValue() + ", became " + now;
            }
        }
        return null;
    }

    // --- user data ---------------------------------------------------------------------------------------

    private Map<String, Object> userData(Map<String, Object> request, History history) {
        List<TopicPartition> owned = partitions(request.get("owned"));
        long generation = (Long) request.get("generation");
        Map<String, Object> asked = object(request.get("member"));
        String id = asked == null ? "A" : (String) asked.get("id");
        Member member = asked == null
            ? new Member(instance())
            : history.members.computeIfAbsent(id, key -> new Member(instance()));
        if (generation != member.generation || !owned.equals(member.owned)) {
            member.generation = generation;
            member.owned = owned;
            member.assignor.onAssignment(assigned(id, owned, history), group(id, (int) generation));
        }
        List<String> topics = asked == null
            ? owned.stream().map(TopicPartition::topic).distinct().collect(Collectors.toList())
            : list(asked.get("topics")).stream().map(String.class::cast).collect(Collectors.toList());
        ByteBuffer data = member.assignor.subscriptionUserData(new HashSet<>(topics));
        if (asked == null) { // what is asked once follows from the question, so no encoder may use it up
            return Collections.singletonMap("user_data", data == null ? null : hex(data));
        }
        Subscription subscription = new Subscription(topics, data, owned);
        return Map.of("encoded", hex(codec.bytes(subscription)));
    }

    /** The assignment as the leader made it, with its user data, if it did make this one. */
    private Assignment assigned(String member, List<TopicPartition> owned, History history) {
        List<ByteBuffer> known = history.withData.getOrDefault(member, List.of());
        for (int index = known.size() - 1; index >= 0; index--) {
            Assignment made = codec.assignment(known.get(index).duplicate());
            if (new HashSet<>(made.partitions()).equals(new HashSet<>(owned))) {
                return made;
            }
        }
        return codec.assignment(codec.bytes(new Assignment(owned)));
    }

    private static ConsumerGroupMetadata group(String member, int generation) {
        return new ConsumerGroupMetadata("rebalance", generation, member, Optional.empty());
    }

    // --- helpers -----------------------------------------------------------------------------------------

    private static boolean has(Class<?> type, String method) {
        return Arrays.stream(type.getMethods()).anyMatch(known -> known.getName().equals(method));
    }

    private static Optional<Object> get(Object value, String method) {
        try {
            return ((Optional<?>) value.getClass().getMethod(method).invoke(value)).map(Object.class::cast);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static List<TopicPartition> partitions(Object runs) {
        List<TopicPartition> found = new ArrayList<>();
        for (Object run : list(runs)) {
            for (Object index : list(list(run).get(1))) {
                found.add(new TopicPartition((String) list(run).get(0), ((Long) index).intValue()));
            }
        }
        return found;
    }

    private static String firstLine(String text) {
        int end = text.indexOf('\n');
        return end < 0 ? text : text.substring(0, end);
    }

    private static String trace(Throwable error) {
        try {
            error.setStackTrace(Arrays.stream(error.getStackTrace())
                .filter(frame -> !OURS.matcher(frame.getClassName()).matches())
                .limit(MOST_FRAMES).toArray(StackTraceElement[]::new));
            StringWriter text = new StringWriter();
            error.printStackTrace(new PrintWriter(text));
            return text.toString().replace("\t", "    ");
        } catch (Throwable another) {
            return error.getClass().getName();
        }
    }

    private static String hex(ByteBuffer buffer) {
        ByteBuffer left = buffer.duplicate();
        StringBuilder text = new StringBuilder(2 * left.remaining());
        while (left.hasRemaining()) {
            int value = left.get() & 0xff;
            text.append(Character.forDigit(value >> 4, 16)).append(Character.forDigit(value & 15, 16));
        }
        return text.toString();
    }

    private static byte[] bytes(String hex) {
        byte[] found = new byte[hex.length() / 2];
        for (int index = 0; index < found.length; index++) {
            int high = Character.digit(hex.charAt(2 * index), 16);
            found[index] = (byte) (high << 4 | Character.digit(hex.charAt(2 * index + 1), 16));
        }
        return found;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        return (List<Object>) value;
    }

    /** The JSON that the driver writes: one object per line, whole numbers only. */
    private static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        Object value() {
            char next = peek();
            switch (next) {
                case '{':
                    return members();
                case '[':
                    return elements();
                case '"':
                    return string();
                case 't':
                    return word("true", true);
                case 'f':
                    return word("false", false);
                case 'n':
                    return word("null", null);
                default:
                    return number();
            }
        }

        private Map<String, Object> members() {
            Map<String, Object> found = new LinkedHashMap<>();
            at++;
            while (peek() != '}') {
                String key = string();
                expect(':');
                found.put(key, value());
                if (peek() != '}') {
                    expect(',');
                }
            }
            at++;
            return found;
        }

        private List<Object> elements() {
            List<Object> found = new ArrayList<>();
            at++;
            while (peek() != ']') {
                found.add(value());
                if (peek() != ']') {
                    expect(',');
                }
            }
            at++;
            return found;
        }

        private String string() {
            expect('"');
            int start = at;
            while (text.charAt(at) != '"' && text.charAt(at) != '\\') {
                at++;
            }
            if (text.charAt(at) == '"') {
                return text.substring(start, at++);
            }
            StringBuilder found = new StringBuilder(text.substring(start, at));
            for (char next = text.charAt(at++); next != '"'; next = text.charAt(at++)) {
                found.append(next == '\\' ? escaped() : next);
            }
            return found.toString();
        }

        private char escaped() {
            char next = text.charAt(at++);
            switch (next) {
                case 'u':
                    at += 4;
                    return (char) Integer.parseInt(text.substring(at - 4, at), 16);
                case 'n':
                    return '\n';
                case 't':
                    return '\t';
                case 'r':
                    return '\r';
                case 'b':
                    return '\b';
                case 'f':
                    return '\f';
                default:
                    return next;
            }
        }

        private Long number() {
            int start = at;
            for (char next = text.charAt(at); next >= '0' && next <= '9' || next == '-'; next = text.charAt(at)) {
                at++;
            }
            return Long.parseLong(text, start, at, 10);
        }

        private Object word(String word, Object value) {
            if (!text.startsWith(word, at)) {
                throw new IllegalArgumentException("no JSON at " + at + ": " + text);
            }
            at += word.length();
            return value;
        }

        private char peek() {
            while (text.charAt(at) == ' ' || text.charAt(at) == '\t') {
                at++;
            }
            return text.charAt(at);
        }

        private void expect(char wanted) {
            if (peek() != wanted) {
                throw new IllegalArgumentException("expected " + wanted + " at " + at + ": " + text);
            }
            at++;
        }

        static void write(Object value, StringBuilder out) {
            if (value instanceof Map) {
                String comma = "{";
                for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                    out.append(comma);
                    write(String.valueOf(entry.getKey()), out);
                    out.append(':');
                    write(entry.getValue(), out);
                    comma = ",";
                }
                out.append(comma.equals("{") ? "{}" : "}");
            } else if (value instanceof List) {
                String comma = "[";
                for (Object item : (List<?>) value) {
                    out.append(comma);
                    write(item, out);
                    comma = ",";
                }
                out.append(comma.equals("[") ? "[]" : "]");
            } else if (value instanceof String) {
                quote((String) value, out);
            } else {
                out.append(value);
            }
        }

        private static void quote(String text, StringBuilder out) {
            out.append('"');
            for (int index = 0; index < text.length(); index++) {
                char next = text.charAt(index);
                if (next == '"' || next == '\\') {
                    out.append('\\').append(next);
                } else if (next < ' ' || next > '~') {
                    out.append(String.format("\\u%04x", (int) next));
                } else {
                    out.append(next);
                }
            }
            out.append('"');
        }
    }
}
