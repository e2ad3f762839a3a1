import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import rebalance.processes.Json;

/**
 * A KafkaConsumer, recorded: the lines are those of clients/recorder.py.
 *
 * <p>Callbacks tell what it owns; that it joins, and in which generation, is taken from its log, which
 * slf4j-simple writes to System.err in the thread that logs.
 */
public final class Recorder implements ConsumerRebalanceListener {
    private static final DateTimeFormatter ISO =
        DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS'Z'").withZone(ZoneOffset.UTC);
    private static final long PAUSE = 50; // milliseconds before the next poll after one that raised
    private static final String THREW = "the listener throws, as it was told to";
    private static final Pattern GENERATION =
        Pattern.compile("Generation\\{generationId=(-?\\d+), memberId='([^']*)'");
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final PrintStream out;
    private final Map<String, Object> settings;
    private final BlockingQueue<Map<String, Object>> commands = new LinkedBlockingQueue<>();
    private Long generation;
    private String member;
    private Long synced = -1L;
    private Supplier<Set<TopicPartition>> owned;
    private boolean throwing; // the next callback does

    private Recorder(PrintStream out, Map<String, Object> settings) {
        this.out = out;
        this.settings = settings;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Recorder recorder = new Recorder(out, Json.object(in.readLine()));
        System.setErr(new PrintStream(recorder.new Tap(System.err), true));
        Thread listener = new Thread(() -> recorder.listen(in));
        listener.setDaemon(true);
        listener.start();
        recorder.serve();
    }

    private void listen(BufferedReader in) {
        try {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                commands.add(Json.object(line));
            }
        } catch (IOException gone) {
            // as its end
        }
        Runtime.getRuntime().halt(3);
    }

    private synchronized void write(String event, Object... more) {
        Map<String, Object> line = new LinkedHashMap<>();
        long now = System.nanoTime() + (Long) settings.get("origin");
        line.put("at", ISO.format(Instant.ofEpochSecond(now / 1_000_000_000, now % 1_000_000_000)));
        line.put("event", event);
        for (String name : List.of("group", "consumer", "host")) {
            line.put(name, settings.get(name));
        }
        if (generation != null) {
            line.put("generation", generation);
        }
        if (member != null) {
            line.put("member", member);
        }
        Object instance = config().get("group.instance.id");
        if (instance != null) {
            line.put("instance", instance);
        }
        for (int i = 0; i < more.length; i += 2) {
            line.put((String) more[i], more[i + 1]);
        }
        out.println(Json.write(line));
        out.flush();
    }

    @SuppressWarnings("unchecked")
    private Map<String, Object> config() {
        return (Map<String, Object>) settings.get("config");
    }

    /** It speaks the consumer protocol (KIP-848): its epochs are seen on the wire, not in its log. */
    private boolean modern() {
        return "consumer".equals(config().get("group.protocol"));
    }

    private void serve() throws Exception {
        write("started", "detail", "kafka-clients " + KafkaInternals.version());
        Properties properties = new Properties();
        properties.putAll(config());
        if (!modern()) {
            List<String> classes = new ArrayList<>();
            Object names = config().getOrDefault("partition.assignment.strategy", "range");
            for (String name : names.toString().split(",")) {
                classes.add(ASSIGNORS.getOrDefault(name.trim(), name.trim()));
            }
            properties.put("partition.assignment.strategy", classes);
        }
        properties.put("bootstrap.servers", settings.get("bootstrap"));
        properties.put("group.id", settings.get("group"));
        properties.put("client.id", settings.get("consumer"));
        properties.put("key.deserializer", ByteArrayDeserializer.class);
        properties.put("value.deserializer", ByteArrayDeserializer.class);
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties);
        owned = consumer::assignment;
        List<String> topics = Json.strings(settings.get("topics"));
        subscribe(consumer, topics);
        boolean polling = true;
        boolean subscribed = !topics.isEmpty(); // without a subscription poll raises
        while (true) {
            Map<String, Object> given = polling && subscribed ? commands.poll() : commands.take();
            String asked = given == null ? "" : (String) given.get("do");
            try {
                switch (asked) {
                    case "":
                        poll(consumer);
                        break;
                    case "subscribe":
                        subscribed = true;
                        subscribe(consumer, Json.strings(given.get("topics")));
                        break;
                    case "unsubscribe":
                        subscribed = false;
                        write("subscribed", "topics", List.of());
                        consumer.unsubscribe();
                        break;
                    case "pause":
                    case "resume":
                        polling = asked.equals("resume");
                        break;
                    case "owns":
                        write("owns", "partitions", names(consumer.assignment()));
                        break;
                    case "throw":
                        throwing = true;
                        break;
                    case "commit":
                        consumer.commitAsync();
                        break;
                    case "close":
                        consumer.close();
                        write("closed");
                        Runtime.getRuntime().halt(0);
                        break;
                    default:
                        write("error", "detail", "no such command: " + asked);
                }
            } catch (RuntimeException error) {
                String cause = error.getCause() == null ? "" : ": " + error.getCause().getMessage();
                write("error", "detail", error.getClass().getSimpleName() + ": " + error.getMessage() + cause);
                if (asked.equals("close")) {
                    Runtime.getRuntime().halt(1);
                }
                Thread.sleep(PAUSE); // an error that stays must not spin
            }
        }
    }

    private void subscribe(KafkaConsumer<byte[], byte[]> consumer, List<String> topics) {
        write("subscribed", "topics", topics);
        if (!topics.isEmpty()) {
            consumer.subscribe(topics, this);
        }
    }

    private void poll(KafkaConsumer<byte[], byte[]> consumer) {
        Map<String, List<Long>> ranges = new TreeMap<>();
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis((Long) settings.get("poll")))) {
            String name = record.topic() + "-" + record.partition();
            List<Long> range = ranges.computeIfAbsent(name, n -> Arrays.asList(record.offset(), record.offset()));
            range.set(0, Math.min(range.get(0), record.offset()));
            range.set(1, Math.max(range.get(1), record.offset()));
        }
        if (!ranges.isEmpty()) {
            write("polled", "ranges", ranges);
        }
    }

    private static Collection<String> names(Collection<TopicPartition> partitions) {
        Collection<String> made = new TreeSet<>();
        partitions.forEach(one -> made.add(one.topic() + "-" + one.partition()));
        return made;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        synced(); // releases before 2.6 do not log it
        told("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        told("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        told("lost", partitions);
    }

    private void told(String event, Collection<TopicPartition> partitions) {
        if (!event.equals("assigned")) {
            write("owned", "partitions", names(owned.get()));
        }
        write(event, "partitions", names(partitions));
        if (throwing) {
            throwing = false;
            throw new IllegalStateException(THREW);
        }
    }

    private synchronized void synced() {
        if (generation != null && !generation.equals(synced)) {
            synced = generation;
            write("synced");
        }
    }

    private synchronized void logged(String line) {
        if (modern()) {
            return;
        }
        if (line.contains("(Re-)joining group")) {
            write("joining");
        } else if (line.contains("Successfully joined group with generation ")) {
            Matcher found = GENERATION.matcher(line);
            if (found.find()) {
                generation = Long.valueOf(found.group(1));
                member = found.group(2);
                synced = -1L;
            } else { // before 2.6
                found = Pattern.compile("with generation (\\d+)").matcher(line);
                generation = found.find() ? Long.valueOf(found.group(1)) : generation;
            }
            write("joined");
        } else if (line.contains("Successfully synced group in generation ")) {
            synced();
        } else if (line.contains("Giving away all assigned partitions as lost")
            || line.contains("Resetting generation")) {
            write("reset");
        } else if (line.contains("sending LeaveGroup request to coordinator")) {
            write("leaving");
        }
    }

    /** Passes on what is written, and reads each line. */
    private final class Tap extends OutputStream {
        private final OutputStream beyond;
        private final ByteArrayOutputStream line = new ByteArrayOutputStream();

        Tap(OutputStream beyond) {
            this.beyond = beyond;
        }

        @Override
        public void write(int one) throws IOException {
            String whole = null;
            synchronized (line) {
                beyond.write(one);
                if (one == '\n') {
                    whole = line.toString("UTF-8");
                    line.reset();
                } else {
                    line.write(one);
                }
            }
            if (whole != null) {
                logged(whole);
            }
        }
    }
}
