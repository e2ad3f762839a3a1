#!/bin/sh
# Kafka Streams and broker 4.4.0, group.protocol=streams: an unchanged program that sets its topics otherwise is refused.
#
# Guess before the run: a running group refuses another topology, as its guide says of significant changes; a group whose
# members have all stopped takes any. Sizes of segments of changelogs are no topology.
# Seen: the settings of internal topics are compared too, and an empty group keeps its topology. A filter more is taken,
# `topic.segment.bytes` is not ("Topology updates are not supported yet"). To delete the group loses its offsets.
# One start with group.protocol=classic makes it forget the topology and keeps the offsets.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kafka_stop; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
KAFKA_PID=''
. "$here/lib/broker.sh"
kafka_start "$work"
jars "$work/streams" kafka-streams:4.4.0
cat >"$work/Restarts.java" <<'JAVA'
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.*;

public class Restarts {
    static int starts = 0;

    /** Start the program, wait until it runs or fails, and stop it. */
    static String start(String broker, String folder, String protocol, boolean filter, Map<String, String> settings)
        throws Exception {
        var all = new Properties();
        all.putAll(Map.of("bootstrap.servers", broker, "application.id", "counts", "group.protocol", protocol,
            "state.dir", folder + "/state" + starts++, "session.timeout.ms", "6000", "heartbeat.interval.ms", "1000",
            "auto.offset.reset", "latest", "commit.interval.ms", "100"));
        all.putAll(settings);
        var builder = new StreamsBuilder();
        KStream<byte[], byte[]> source = builder.stream("t", Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()));
        (filter ? source.filter((key, value) -> true) : source).groupByKey().count(Materialized.as("count"));
        var streams = new KafkaStreams(builder.build(), all);
        var error = new StringBuilder();
        streams.setUncaughtExceptionHandler(exception -> {
            error.append(": ").append(exception.getCause().getMessage());
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        var ends = EnumSet.of(KafkaStreams.State.RUNNING, KafkaStreams.State.ERROR);
        for (int i = 0; i < 600 && !ends.contains(streams.state()); i++) {
            Thread.sleep(100);
        }
        String state = streams.state() + error.toString();
        streams.close();
        return state;
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> none = Map.of(), segments = Map.of("topic.segment.bytes", "10000000");
        try (var admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            admin.createTopics(List.of(new NewTopic("t", 2, (short) 1))).all().get();
            System.out.println("first start: " + start(args[0], args[1], "streams", false, none));
            System.out.println("a filter more: " + start(args[0], args[1], "streams", true, none));
            System.out.println("other segments: " + start(args[0], args[1], "streams", false, segments));
            System.out.println("as a classic group: " + start(args[0], args[1], "classic", false, segments));
            for (int i = 0; i < 100; i++) { // a classic member of Streams does not leave: its session has to end
                if (admin.listGroups().all().get().stream().allMatch(group -> group.groupState().get() == org.apache.kafka.common.GroupState.EMPTY)) {
                    break;
                }
                Thread.sleep(200);
            }
            System.out.println("and back: " + start(args[0], args[1], "streams", false, segments));
        }
    }
}
JAVA
javac -cp "$JARS:$work/streams/*" -d "$work" "$work/Restarts.java"
timeout 400 java -Xmx128m -cp "$work:$JARS:$work/streams/*" Restarts "$KAFKA" "$work" >"$work/seen" 2>/dev/null
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
first start: RUNNING
a filter more: RUNNING
other segments: ERROR: Topology updates are not supported yet.
as a classic group: RUNNING
and back: RUNNING
TEXT
diff "$work/expected" "$work/seen"
