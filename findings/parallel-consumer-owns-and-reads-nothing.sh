#!/bin/sh
# parallel-consumer-core 0.5.3.2 (Confluent) with other kafka-clients than its own 3.7.0, broker 4.4.0.
#
# Guess before the run: with clients 3.9.1 and 4.4.0, in a classic group and in one of the consumer protocol, it reads all
# records, or refuses to start.
# Seen: it refuses a classic consumer of both, since it cannot see whether auto commit is on. It takes both consumers of the
# consumer protocol. With 3.9.1 it reads all. With 4.4.0 a class is missing that it needs for each poll: it has failed
# by its own account, stays a member, and keeps the partitions. The error itself comes out when it is closed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kafka_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
KAFKA_PID=''
. "$here/lib/broker.sh"
kafka_start "$work"
cat >"$work/parallel.xml" <<'XML'
<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version><dependencies>
<dependency><groupId>io.confluent.parallelconsumer</groupId><artifactId>parallel-consumer-core</artifactId><version>0.5.3.2</version></dependency>
</dependencies></project>
XML
timeout 600 mvn -q -B -f "$work/parallel.xml" dependency:copy-dependencies -DoutputDirectory="$work/parallel" >"$work/mvn.log" 2>&1 || { cat "$work/mvn.log"; exit 1; }
rm "$work"/parallel/kafka-clients-*.jar
jars "$work/clients-3.9.1" kafka-clients:3.9.1
cat >"$work/Processor.java" <<'JAVA'
import io.confluent.parallelconsumer.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Processor {
    public static void main(String[] args) throws Exception {
        String version = args[1];
        for (String protocol : List.of("classic", "consumer")) {
            System.out.println(version + " " + protocol + ": " + process(args[0], version + protocol, protocol));
        }
        System.exit(0);
    }

    /** Return how many partitions the members of a group own, by the broker. */
    static int owned(String broker, String group) throws Exception {
        try (var admin = Admin.create(Map.of("bootstrap.servers", broker))) {
            return admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().stream()
                .mapToInt(member -> member.assignment().topicPartitions().size()).sum();
        }
    }

    static String process(String broker, String group, String protocol) throws Exception {
        var bytes = new ByteArrayDeserializer();
        var consumer = new KafkaConsumer<byte[], byte[]>(Map.of("bootstrap.servers", broker, "group.id", group,
            "group.protocol", protocol, "auto.offset.reset", "earliest", "enable.auto.commit", "false"), bytes, bytes);
        ParallelStreamProcessor<byte[], byte[]> processor;
        try {
            processor = ParallelStreamProcessor.createEosStreamProcessor(
                ParallelConsumerOptions.<byte[], byte[]>builder().consumer(consumer).build());
        } catch (ParallelConsumerException error) {
            return error.getMessage().replaceAll(" for .*", "");
        }
        var read = new AtomicInteger();
        processor.subscribe(List.of("t"));
        processor.poll(record -> read.incrementAndGet());
        for (int i = 0; i < 200 && read.get() < 10; i++) {
            Thread.sleep(100);
        }
        String state = ((ParallelEoSStreamProcessor<?, ?>) processor).isClosedOrFailed() ? "failed" : "running";
        String text = read.get() + " of 10 records read, " + state + ", owns " + owned(broker, group);
        try {
            processor.closeDontDrainFirst(Duration.ofSeconds(5));
            return text + ", closed";
        } catch (Throwable error) {
            Throwable cause = error;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            return text + ", at close " + cause.getClass().getSimpleName() + " "
                + String.valueOf(cause.getMessage()).replaceAll(".*[./]", "");
        }
    }
}
JAVA
tool TopicCommand --bootstrap-server "$KAFKA" --create --topic t --partitions 2 >/dev/null
seq 10 | timeout 60 java -cp "$JARS" org.apache.kafka.tools.ConsoleProducer --bootstrap-server "$KAFKA" --topic t 2>/dev/null
mkdir "$work/clients-4.4.0"
cp "$work"/jars/kafka-clients-4.4.0.jar "$work/clients-4.4.0"
for version in 3.9.1 4.4.0; do
    path="$work/clients-$version/*:$work/parallel/*"
    javac -cp "$path" -d "$work" "$work/Processor.java"
    timeout 120 java -Xmx128m -cp "$work:$path" Processor "$KAFKA" "$version" 2>/dev/null
done >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
3.9.1 classic: Unable to check whether auto commit is enabled
3.9.1 consumer: 10 of 10 records read, running, owns 2, closed
4.4.0 classic: Unable to check whether auto commit is enabled
4.4.0 consumer: 0 of 10 records read, failed, owns 2, at close ClassNotFoundException CloseableIterator
TEXT
diff "$work/expected" "$work/seen"
