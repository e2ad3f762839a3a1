package org.apache.kafka.streams.processor.internals;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** A member of an application in one JVM with those of its release; {@link Host} speaks for them in lines. */
public interface Peer {
    /** Whether it keeps what it owns when it joins. */
    boolean cooperative();

    ByteBuffer userData(List<TopicPartition> owned);

    Map<String, Held> lead(Cluster cluster, Map<String, Held> members);

    /** Take an assignment; whether it wants to join again for a reason of its own (version probing, a follow-up). */
    boolean take(List<TopicPartition> partitions, ByteBuffer userData);

    /** What a member joins with, or is given. */
    final class Held {
        final List<TopicPartition> partitions;
        final ByteBuffer userData;

        Held(List<TopicPartition> partitions, ByteBuffer userData) {
            this.partitions = partitions;
            this.userData = userData;
        }
    }

    /**
     * Requests, a line each, parts by tabs: {@code new ID UPGRADE_FROM}, {@code join ID OWNED}, {@code lead ID COUNT
     * (MEMBER OWNED DATA)...}, {@code take ID PARTITIONS DATA}. Partitions are numbers with commas, data base 64.
     */
    final class Host {
        public static void main(String[] arguments) throws Exception {
            PrintStream out = System.out;
            System.setOut(System.err);
            Map<String, Peer> peers = new HashMap<>();
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String answer;
                try {
                    answer = answer(arguments[0], peers, line.split("\t", -1));
                } catch (Throwable error) {
                    answer = "error\t" + String.valueOf(error).replaceAll("\\s+", " ");
                }
                out.println(answer);
                out.flush();
            }
        }

        private static String answer(String type, Map<String, Peer> peers, String[] parts) throws Exception {
            Peer peer = peers.get(parts[1]);
            switch (parts[0]) {
                case "new":
                    peers.put(parts[1], (Peer) Class.forName(type).getConstructor(String.class, String.class)
                        .newInstance(parts[1], parts[2]));
                    return "ok\t" + peers.get(parts[1]).cooperative();
                case "join":
                    return "ok\t" + text(peer.userData(partitions(parts[2])));
                case "take":
                    return "ok\t" + peer.take(partitions(parts[2]), data(parts[3]));
                default:
                    Map<String, Held> members = new TreeMap<>();
                    for (int at = 3; at < parts.length; at += 3) {
                        members.put(parts[at], new Held(partitions(parts[at + 1]), data(parts[at + 2])));
                    }
                    StringBuilder found = new StringBuilder("ok");
                    new TreeMap<>(peer.lead(cluster(Integer.parseInt(parts[2])), members)).forEach((id, given) ->
                        found.append('\t').append(id).append('\t').append(numbers(given.partitions))
                            .append('\t').append(text(given.userData)));
                    return found.toString();
            }
        }

        private static List<TopicPartition> partitions(String numbers) {
            List<TopicPartition> found = new ArrayList<>();
            for (String number : numbers.isEmpty() ? new String[0] : numbers.split(",")) {
                found.add(new TopicPartition("in-0", Integer.parseInt(number)));
            }
            return found;
        }

        private static String numbers(List<TopicPartition> partitions) {
            List<String> found = new ArrayList<>();
            partitions.forEach(partition -> found.add(String.valueOf(partition.partition())));
            return String.join(",", found);
        }

        private static ByteBuffer data(String text) {
            return ByteBuffer.wrap(Base64.getDecoder().decode(text));
        }

        private static String text(ByteBuffer data) {
            byte[] bytes = new byte[data.remaining()];
            data.duplicate().get(bytes);
            return Base64.getEncoder().encodeToString(bytes);
        }

        private static Cluster cluster(int count) {
            Node node = new Node(0, "h", 1);
            List<PartitionInfo> all = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                all.add(new PartitionInfo("in-0", number, node, new Node[] {node}, new Node[] {node}));
            }
            return new Cluster("c", List.of(node), all, java.util.Set.of(), java.util.Set.of());
        }
    }
}
