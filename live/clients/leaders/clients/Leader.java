import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * {@code Leader ADDRESS GROUP TOPICS ASSIGNOR}: a KafkaConsumer that polls. TOPICS is {@code .*} where it is
 * to lead, so that it has the metadata of all topics before that; ASSIGNOR may be a list. Without arguments it runs
 * several, side by side.
 */
public final class Leader implements ConsumerRebalanceListener {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
    private static final String DAY = "86400000";

    @Override
    public void onPartitionsRevoked(java.util.Collection<TopicPartition> partitions) {}

    @Override
    public void onPartitionsAssigned(java.util.Collection<TopicPartition> partitions) {}

    public static void main(String[] arguments) throws IOException {
        if (arguments.length > 0) {
            System.exit(run(arguments, ending -> {}));
        }
        Host.serve(Leader::run);
    }

    private static int run(String[] arguments, Consumer<Runnable> ending) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("group.id", arguments[1]);
        properties.put("partition.assignment.strategy", Arrays.stream(arguments[3].split(","))
            .map(name -> ASSIGNORS.getOrDefault(name, name)).toList());
        properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("session.timeout.ms", "3600000");
        properties.put("max.poll.interval.ms", DAY);
        properties.put("request.timeout.ms", DAY);
        properties.put("default.api.timeout.ms", DAY);
        properties.put("connections.max.idle.ms", DAY);
        properties.put("heartbeat.interval.ms", "20");
        properties.put("metadata.max.age.ms", "0");
        properties.put("retry.backoff.ms", "0");
        properties.put("retry.backoff.max.ms", "0");
        properties.put("reconnect.backoff.ms", "0");
        properties.put("reconnect.backoff.max.ms", "0");
        properties.put("exclude.internal.topics", "false");
        properties.put("enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties)) {
            ending.accept(consumer::wakeup);
            if (arguments[2].equals(".*")) {
                consumer.subscribe(Pattern.compile(arguments[2]), new Leader());
            } else {
                consumer.subscribe(Arrays.asList(arguments[2].split(",")), new Leader());
            }
            try {
                while (true) {
                    consumer.poll(Duration.ofMinutes(1));
                }
            } catch (WakeupException ended) {
                consumer.close(Duration.ZERO); // nobody answers it any more
                return 0;
            }
        } catch (Throwable error) {
            error.printStackTrace();
            return 1;
        }
    }
}
