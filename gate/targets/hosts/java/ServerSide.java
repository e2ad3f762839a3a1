import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/**
 * An assignor of a broker, of consumer groups (KIP-848) or share groups (KIP-932), behind {@link Bridge}: it is given
 * what TargetAssignmentBuilder gives it. What members of the request own is the target of the group before. Everything
 * is in maps by hash, as there, and was put into them in an order of its own, so that how the request is ordered
 * decides nothing.
 */
final class ServerSide implements Function<Map<String, Object>, Map<String, Object>> {
    private final PartitionAssignor assignor;
    private final List<String> promises;
    private final String protocol;

    ServerSide(Supplier<Object> made, List<String> promises, String protocol) {
        this.assignor = (PartitionAssignor) made.get(); // one for each broker
        this.promises = promises;
        this.protocol = protocol;
    }

    @Override
    public Map<String, Object> apply(Map<String, Object> request) {
        switch ((String) request.get("cmd")) {
            case "hello":
                return Bridge.hello(
                    assignor.getClass(), assignor.name(), "kafka-group-coordinator-api", protocol, promises);
            case "assign":
                return assign(request);
            default:
                throw new IllegalStateException("a server-side assignor writes no user data");
        }
    }

    private Map<String, Object> assign(Map<String, Object> request) {
        Topics topics = new Topics(Bridge.object(Bridge.object(request.get("cluster")).get("topics")));
        Group group = new Group();
        Map<String, Integer> subscribers = new HashMap<>();
        Map<String, Map<String, Object>> sorted = new TreeMap<>();
        for (Object item : Bridge.list(request.get("members"))) {
            sorted.put((String) Bridge.object(item).get("id"), Bridge.object(item));
        }
        sorted.forEach((id, given) -> {
            Member member = new Member(given, topics);
            group.members.put(id, member);
            member.names.forEach(topic -> subscribers.merge(topic, 1, Integer::sum));
        });
        int all = group.members.size();
        group.type = subscribers.values().stream().allMatch(count -> count == all)
            ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        Map<String, Object> before = group.written(topics);
        Map<String, MemberAssignment> found = assignor.assign(group, topics).members();
        if (found == null) {
            throw new Bridge.Garbage("assign returned a GroupAssignment of null");
        }
        Map<String, Object> assignment = new TreeMap<>();
        found.forEach((member, own) -> {
            if (member == null || own == null || own.partitions() == null) {
                throw new Bridge.Garbage("assign returned an assignment of " + own + " for the member " + member);
            }
            assignment.put(member, topics.written(own.partitions()));
        });
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("assignment", assignment);
        Map<String, Object> after = group.written(topics);
        if (!after.equals(before)) {
            result.put("mutated", "what members are assigned was " + before + ", became " + after);
        }
        return result;
    }

    /** The topics that there are, by ids that follow from their names. */
    private static final class Topics implements SubscribedTopicDescriber {
        private final Map<String, Uuid> ids = new HashMap<>();
        private final Map<Uuid, String> names = new HashMap<>();
        private final Map<Uuid, List<Set<String>>> racks = new HashMap<>();

        Topics(Map<String, Object> given) {
            new TreeMap<>(given).forEach((name, partitions) -> {
                List<Set<String>> all = new ArrayList<>();
                for (Object replicas : Bridge.list(partitions)) {
                    Set<String> here = new HashSet<>();
                    Bridge.list(replicas).forEach(rack -> here.add((String) rack));
                    all.add(Collections.unmodifiableSet(here));
                }
                racks.put(id(name), all);
            });
        }

        /** Of any topic, also of one that is gone. */
        Uuid id(String name) {
            return ids.computeIfAbsent(name, key -> {
                UUID made = UUID.nameUUIDFromBytes(key.getBytes(java.nio.charset.StandardCharsets.UTF_8));
                Uuid id = new Uuid(made.getMostSignificantBits(), made.getLeastSignificantBits());
                names.put(id, key);
                return id;
            });
        }

        /** As the protocol writes partitions: a list of topics with their indexes. */
        List<Object> written(Map<Uuid, Set<Integer>> partitions) {
            Map<String, Object> byName = new TreeMap<>();
            partitions.forEach((id, indexes) -> byName.put(
                names.getOrDefault(id, String.valueOf(id)), new ArrayList<Object>(new TreeSet<>(indexes))));
            List<Object> found = new ArrayList<>();
            byName.forEach((name, indexes) -> {
                if (!((Collection<?>) indexes).isEmpty()) {
                    found.add(List.of(name, indexes));
                }
            });
            return found;
        }

        @Override
        public int numPartitions(Uuid topicId) {
            List<Set<String>> known = racks.get(topicId);
            return known == null ? -1 : known.size();
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            List<Set<String>> known = racks.get(topicId);
            return known == null || partition >= known.size() ? Set.of() : known.get(partition);
        }
    }

    /** A member: what it subscribes to of what there is, and its part of the target before. */
    private static final class Member implements MemberSubscription, MemberAssignment {
        private final Optional<String> rack;
        private final Optional<String> instance;
        private final Set<String> names = new HashSet<>(); // of a list that clients sort
        private final Set<Uuid> topics = new LinkedHashSet<>(); // in the order of that set, as TopicIds
        private final Map<Uuid, Set<Integer>> partitions = new HashMap<>();

        Member(Map<String, Object> given, Topics known) {
            rack = Optional.ofNullable((String) given.get("rack"));
            instance = Optional.ofNullable((String) given.get("instance"));
            new TreeSet<>(Bridge.list(given.get("topics"))).forEach(topic -> names.add((String) topic));
            for (String name : names) {
                Uuid id = known.id(name);
                if (known.numPartitions(id) >= 0) {
                    topics.add(id);
                }
            }
            Map<String, Set<Integer>> owned = new TreeMap<>();
            for (Object run : Bridge.list(given.get("owned"))) {
                Set<Integer> indexes = owned.computeIfAbsent(
                    (String) Bridge.list(run).get(0), key -> new TreeSet<>());
                Bridge.list(Bridge.list(run).get(1)).forEach(index -> indexes.add(((Long) index).intValue()));
            }
            owned.forEach((name, indexes) -> partitions.put(known.id(name), new HashSet<>(indexes)));
        }

        @Override
        public Optional<String> rackId() {
            return rack;
        }

        @Override
        public Optional<String> instanceId() {
            return instance;
        }

        @Override
        public Set<Uuid> subscribedTopicIds() {
            return Collections.unmodifiableSet(topics);
        }

        @Override
        public Map<Uuid, Set<Integer>> partitions() {
            return Collections.unmodifiableMap(partitions); // of this class: Kafka's own look at it
        }
    }

    private static final class Group implements GroupSpec {
        private final Map<String, Member> members = new HashMap<>();
        private SubscriptionType type;

        Map<String, Object> written(Topics topics) {
            Map<String, Object> found = new TreeMap<>();
            members.forEach((id, member) -> found.put(id, topics.written(member.partitions)));
            return found;
        }

        @Override
        public Collection<String> memberIds() {
            return Collections.unmodifiableSet(members.keySet());
        }

        @Override
        public SubscriptionType subscriptionType() {
            return type;
        }

        @Override
        public boolean isPartitionAssigned(Uuid topicId, int partitionId) {
            return members.values().stream()
                .anyMatch(one -> one.partitions.getOrDefault(topicId, Set.of()).contains(partitionId));
        }

        /** Since 4.1, for share groups. */
        public boolean isPartitionAssignable(Uuid topicId, int partitionId) {
            return true;
        }

        @Override
        public MemberSubscription memberSubscription(String memberId) {
            return member(memberId);
        }

        @Override
        public MemberAssignment memberAssignment(String memberId) {
            return members.getOrDefault(memberId, new Member(
                Map.of("topics", List.of(), "owned", List.of()), new Topics(Map.of())));
        }

        private Member member(String id) {
            Member found = members.get(id);
            if (found == null) {
                throw new IllegalArgumentException("Member Id " + id + " not found.");
            }
            return found;
        }
    }
}
