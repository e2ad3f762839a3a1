#!/bin/sh
# kafka-streams 4.1.2: upgrade.from=2.3 is a valid setting, and no application can be built with it.
#
# Kafka Streams 4.0 took the eager protocol out, and with it the upgrade from 2.3 and older without a stop.
# Guess before the run: StreamsConfig refuses the value, since it has a list of valid ones.
# Seen: StreamsConfig of 4.1.2 takes it. The assignor refuses it, while KafkaStreams builds its consumer: the message
# that says so is the cause of "Failed to construct kafka consumer". 4.4.0 refuses it in StreamsConfig; there the
# list of the valid values begins with 2.4. A test of the settings alone finds the mistake with the newer one only.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
. "$here/lib/broker.sh"
cat >"$work/Play.java" <<'JAVA'
import java.util.*;
import org.apache.kafka.streams.*;

public class Play {
    static String brief(String message) {
        return message.length() > 110 ? message.substring(0, 110) + "..." : message;
    }

    public static void main(String[] args) {
        for (String from : List.of("2.3", "2.4")) {
            Properties settings = new Properties();
            // Nothing listens there; the application is not started.
            settings.putAll(Map.of("application.id", "a", "bootstrap.servers", "127.0.0.1:1", "upgrade.from", from));
            try {
                new StreamsConfig(settings);
                System.out.println("  " + from + ": StreamsConfig takes it");
            } catch (Exception error) {
                System.out.println("  " + from + ": StreamsConfig: " + brief(error.getMessage()));
                continue;
            }
            StreamsBuilder builder = new StreamsBuilder();
            builder.stream("t");
            try (KafkaStreams application = new KafkaStreams(builder.build(), settings)) {
                System.out.println("  " + from + ": KafkaStreams is built");
            } catch (Exception error) {
                System.out.println("  " + from + ": KafkaStreams: " + error.getMessage());
                System.out.println("    because " + brief(error.getCause().getMessage()));
            }
        }
        System.exit(0);
    }
}
JAVA
for release in 4.1.2 4.4.0; do
    jars "$work/$release" kafka-streams:$release
    echo "kafka-streams $release"
    timeout 100 java -cp "$work/$release/*" "$work/Play.java" 2>/dev/null
done >"$work/seen"
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
kafka-streams 4.1.2
  2.3: StreamsConfig takes it
  2.3: KafkaStreams: Failed to construct kafka consumer
    because The eager rebalancing protocol is no longer supported in 4.0 which means live upgrades from 2.3 or below are n...
  2.4: StreamsConfig takes it
  2.4: KafkaStreams is built
kafka-streams 4.4.0
  2.3: StreamsConfig: Invalid value 2.3 for configuration upgrade.from: String must be one of: null, 2.4, 2.5, 2.6, 2.7, 2.8, 3.0, 3...
  2.4: StreamsConfig takes it
  2.4: KafkaStreams is built
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
