import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Random groups in which somebody claims what another claims too: how many there are, and for how many the leader's
 * check (ConsumerCoordinator.validateCooperativeAssignment) would reject what CooperativeStickyAssignor decides.
 */
public final class DoubleClaims {
    private final Random random;
    private final List<PartitionInfo> cluster = new ArrayList<>();
    private final List<TopicPartition> partitions = new ArrayList<>();
    private final Map<String, Subscription> group = new TreeMap<>();
    private boolean twice;

    private DoubleClaims(long seed) {
        random = new Random(seed);
        List<String> topics = new ArrayList<>();
        for (int topic = 1 + random.nextInt(2); topic > 0; topic--) {
            topics.add("t" + topic);
            for (int number = random.nextInt(5); number >= 0; number--) {
                cluster.add(new PartitionInfo("t" + topic, number, null, new Node[0], new Node[0]));
                partitions.add(new TopicPartition("t" + topic, number));
            }
        }
        boolean equal = random.nextInt(3) > 0;
        int members = 2 + random.nextInt(4);
        Set<TopicPartition> claimed = new HashSet<>();
        for (int member = 0; member < members; member++) {
            List<String> its = new ArrayList<>(topics);
            if (!equal && its.size() > 1 && random.nextBoolean()) {
                its.remove(random.nextInt(2));
            }
            List<TopicPartition> owned = new ArrayList<>();
            for (TopicPartition one : partitions) {
                if (its.contains(one.topic()) && random.nextInt(members) == 0) {
                    owned.add(one);
                    twice |= !claimed.add(one);
                }
            }
            group.put("m" + member, new Subscription(its, null, owned));
        }
    }

    private boolean rejected() {
        Cluster known = new Cluster("c", Collections.singletonList(new Node(0, "h", 1)), cluster,
            Collections.emptySet(), Collections.emptySet());
        Map<String, Assignment> given =
            new CooperativeStickyAssignor().assign(known, new GroupSubscription(group)).groupAssignment();
        Set<TopicPartition> added = new HashSet<>();
        Set<TopicPartition> revoked = new HashSet<>();
        group.forEach((member, subscription) -> {
            List<TopicPartition> owned = subscription.ownedPartitions();
            List<TopicPartition> assigned = given.get(member).partitions();
            assigned.stream().filter(one -> !owned.contains(one)).forEach(added::add);
            owned.stream().filter(one -> !assigned.contains(one)).forEach(revoked::add);
        });
        added.retainAll(revoked);
        return !added.isEmpty();
    }

    public static void main(String[] arguments) {
        int groups = 0;
        int rejected = 0;
        int threw = 0;
        for (int seed = 0; seed < Integer.parseInt(arguments[0]); seed++) {
            DoubleClaims one = new DoubleClaims(seed);
            if (one.twice) {
                groups++;
                try {
                    rejected += one.rejected() ? 1 : 0;
                } catch (IllegalStateException error) { // J2, in the assignor itself
                    threw++;
                }
            }
        }
        System.out.println(groups + " " + rejected + " " + threw);
    }
}
