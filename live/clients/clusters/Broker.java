import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import rebalance.processes.Json;

/**
 * One Kafka node in KRaft mode: {@code Broker PROPERTIES CLUSTER_ID BOOTSTRAP NODES}. It formats its storage,
 * starts, says so, and does what its stdin asks, one JSON object a line; the end of stdin ends it.
 */
public final class Broker {
    private final PrintStream out;
    private final String bootstrap;
    private final int nodes;
    private KafkaProducer<byte[], byte[]> producer;
    private Admin admin;

    private Broker(PrintStream out, String bootstrap, int nodes) {
        this.out = out;
        this.bootstrap = bootstrap;
        this.nodes = nodes;
    }

    public static void main(String[] given) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        Thread server = new Thread(new Broker(out, given[2], Integer.parseInt(given[3]))::serve);
        server.setDaemon(true);
        server.start();
        format(given[0], given[1]);
        call("kafka.Kafka", given[0]);
    }

    /** StorageTool is a command line tool: it ends the process, which is not wanted here. */
    private static void format(String properties, String id) throws Exception {
        int code = KafkaInternals.exitCode(() -> {
            call("kafka.tools.StorageTool", "format", "-t", id, "-c", properties);
            return null;
        });
        if (code != 0) {
            throw new IllegalStateException("kafka.tools.StorageTool ends with " + code + ": it says why above");
        }
    }

    private static void call(String name, String... arguments) throws Exception {
        Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
    }

    private void say(Map<String, Object> line) {
        out.println(Json.write(line));
        out.flush();
    }

    private void serve() {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            Thread ready = new Thread(this::ready);
            ready.setDaemon(true);
            ready.start();
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                try {
                    ready.join();
                    say(answer(Json.object(line)));
                } catch (Exception error) {
                    say(Map.of("error", String.valueOf(error.getCause() == null ? error : error.getCause())));
                }
            }
        } catch (Exception gone) {
            // as the end of stdin
        }
        Runtime.getRuntime().halt(0);
    }

    /** Wait until all nodes are there; the admin client asks again by itself until one answers. */
    private void ready() {
        while (true) {
            try {
                if (admin == null) {
                    Properties properties = new Properties();
                    properties.put("bootstrap.servers", bootstrap);
                    properties.put("reconnect.backoff.max.ms", "200");
                    admin = Admin.create(properties);
                }
                if (admin.describeCluster().nodes().get(5, TimeUnit.SECONDS).size() >= nodes) {
                    say(Map.of("version", KafkaInternals.version()));
                    return;
                }
                Thread.sleep(50);
            } catch (Exception error) {
                // not yet
            }
        }
    }

    private Map<String, Object> answer(Map<String, Object> given) throws Exception {
        String name = (String) given.get("name");
        switch ((String) given.get("do")) {
            case "create_topic":
                int count = ((Long) given.get("partitions")).intValue();
                admin.createTopics(List.of(new NewTopic(name, count, (short) nodes))).all().get();
                for (int seen = 0; seen < count; Thread.sleep(20)) { // each broker learns of it in its time
                    try {
                        seen = describe(name);
                    } catch (Exception error) {
                        seen = 0;
                    }
                }
                return Map.of("ok", true, "id", id(name));
            case "add_partitions":
                int total = ((Long) given.get("partitions")).intValue();
                admin.createPartitions(Map.of(name, NewPartitions.increaseTo(total))).all().get();
                break;
            case "delete_topic":
                admin.deleteTopics(List.of(name)).all().get();
                break;
            case "produce":
                produce((String) given.get("topic"), (Long) given.get("partition"), (Long) given.get("count"));
                break;
            case "coordinator":
                String group = (String) given.get("group");
                int node = admin.describeConsumerGroups(List.of(group)).all().get().get(group).coordinator().id();
                return Map.of("node", node);
            default:
                return Map.of("error", "no such command");
        }
        return Map.of("ok", true);
    }

    /** The id of a topic; nothing before 3.1. */
    private String id(String name) throws Exception {
        try {
            return String.valueOf(TopicDescription.class.getMethod("topicId").invoke(description(name)));
        } catch (NoSuchMethodException older) {
            return "";
        }
    }

    /** How many partitions a topic has. */
    private int describe(String name) throws Exception {
        return description(name).partitions().size();
    }

    /** What gives the descriptions was renamed in 3.1, and the old name left in 4.0. */
    private TopicDescription description(String name) throws Exception {
        Object described = admin.describeTopics(List.of(name));
        Method values;
        try {
            values = described.getClass().getMethod("topicNameValues");
        } catch (NoSuchMethodException older) {
            values = described.getClass().getMethod("values");
        }
        Future<?> found = (Future<?>) ((Map<?, ?>) values.invoke(described)).get(name);
        return (TopicDescription) found.get();
    }

    private void produce(String topic, long partition, long count) throws Exception {
        if (producer == null) {
            Properties properties = new Properties();
            properties.put("bootstrap.servers", bootstrap);
            properties.put("reconnect.backoff.max.ms", "200");
            properties.put("max.block.ms", "10000"); // for a partition that there is not
            producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        }
        List<Future<?>> sent = new ArrayList<>();
        for (long number = 0; number < count; number++) {
            byte[] value = Long.toString(number).getBytes(StandardCharsets.UTF_8);
            sent.add(producer.send(new ProducerRecord<>(topic, (int) partition, null, value)));
        }
        producer.flush();
        for (Future<?> one : sent) {
            one.get(); // throws what became of it
        }
    }
}
