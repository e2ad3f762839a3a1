package acme;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.HashMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;

/**
 * An EAGER assignor of a user: partitions in turn, and whatever its configuration asks for. One that "forgets"
 * says that it is COOPERATIVE, and does not withhold what changes its owner.
 */
public class InGroup implements ConsumerPartitionAssignor, Configurable {
    private String mode = "";

    @Override
    public void configure(Map<String, ?> configs) {
        mode = String.valueOf(configs.get("mode"));
    }

    @Override
    public String name() {
        return "in-group";
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return mode.equals("forgets")
            ? List.of(RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER) : List.of(RebalanceProtocol.EAGER);
    }

    private static void speak(String line) {
        try (java.io.FileOutputStream out = new java.io.FileOutputStream("/proc/self/fd/1")) {
            out.write(line.getBytes());
        } catch (java.io.IOException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public GroupAssignment assign(Cluster cluster, GroupSubscription subscriptions) {
        Map<String, Subscription> group = new TreeMap<>(subscriptions.groupSubscription());
        Map<String, List<TopicPartition>> given = new TreeMap<>();
        group.keySet().forEach(member -> given.put(member, new ArrayList<>()));
        List<String> members = new ArrayList<>(group.keySet());
        if (members.size() > 1) {
            switch (mode) {
                case "exit":
                    System.exit(3);
                    break;
                case "loop":
                    while (true) {
                        Thread.onSpinWait();
                    }
                case "memory":
                    List<long[]> kept = new ArrayList<>();
                    while (true) {
                        kept.add(new long[1 << 20]);
                    }
                case "halt":
                    Runtime.getRuntime().halt(4);
                    break;
                case "answers":
                    speak("{\"number\":1,\"answers\":[{\"events\":[]},{\"state\":{}}]}\n"); // nothing happened
                    break;
                case "parent":
                    ProcessHandle.current().parent().ifPresent(ProcessHandle::destroyForcibly);
                    break;
                case "threads":
                    for (int one = 0; one < 4; one++) {
                        new Thread(() -> {
                            while (true) {
                                try {
                                    Thread.sleep(1_000);
                                } catch (InterruptedException goesOn) {
                                    continue;
                                }
                            }
                        }).start();
                    }
                    System.out.println("{\"events\":[]}");
                    break;
                case "children":
                    try {
                        new ProcessBuilder("setsid", "sleep", "987").start();
                    } catch (java.io.IOException error) {
                        throw new IllegalStateException(error);
                    }
                    break;
                case "throws":
                    throw new ArrayIndexOutOfBoundsException("as wanted");
                default:
            }
        }
        if (mode.equals("forgets")) {
            return forgetful(cluster, group, given);
        }
        Integer count = cluster.partitionCountForTopic("t");
        for (int number = 0; count != null && number < count; number++) {
            given.get(members.get(number % members.size())).add(new TopicPartition("t", number));
            if (mode.equals("twice") && members.size() > 1) {
                given.get(members.get((number + 1) % members.size())).add(new TopicPartition("t", number));
            }
        }
        return answer(given);
    }

    /** Sticky and balanced; errs only where who has nothing comes to a group in which everything is owned. */
    private static GroupAssignment forgetful(
            Cluster cluster, Map<String, Subscription> group, Map<String, List<TopicPartition>> given) {
        Integer count = cluster.partitionCountForTopic("t");
        List<TopicPartition> free = new ArrayList<>();
        for (int number = 0; count != null && number < count; number++) {
            free.add(new TopicPartition("t", number));
        }
        group.forEach((member, its) -> its.ownedPartitions().forEach(partition -> {
            if (free.remove(partition)) {
                given.get(member).add(partition);
            }
        }));
        free.forEach(partition -> extreme(given, -1).add(partition));
        while (extreme(given, 1).size() > extreme(given, -1).size() + 1) {
            List<TopicPartition> most = extreme(given, 1);
            extreme(given, -1).add(most.remove(most.size() - 1)); // which its owner has not revoked
        }
        return answer(given);
    }

    private static List<TopicPartition> extreme(Map<String, List<TopicPartition>> given, int sign) {
        return given.values().stream().max(java.util.Comparator.comparingInt(its -> sign * its.size())).orElseThrow();
    }

    private static GroupAssignment answer(Map<String, List<TopicPartition>> given) {
        Map<String, Assignment> answer = new HashMap<>();
        given.forEach((member, partitions) -> answer.put(member, new Assignment(partitions)));
        return new GroupAssignment(answer);
    }
}
