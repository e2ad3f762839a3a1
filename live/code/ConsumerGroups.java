package org.apache.kafka.coordinator.group;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatRequest;
import org.apache.kafka.common.requests.HeartbeatRequest;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import rebalance.cell.Out;
import rebalance.cell.Shapes;

/**
 * The consumer protocol (KIP-848): what its messages say, requests of members that are played, and what a coordinator
 * knows of such a group, by reflection: its classes have moved and have other types by release.
 */
final class ConsumerGroups {
    private static final String CONSUMER = "consumer";
    private static final short BY_NAME = 9; // the newest OffsetCommit that names topics and takes epochs
    private static final Map<String, Method> METHODS = new HashMap<>();

    private Map<Uuid, String> names = Map.of();
    private String failure;

    /** What a heartbeat threw that is no answer of the protocol; the next response has it. */
    void failed(RuntimeException error) {
        failure = error.toString();
    }

    /** The topics that ids may be of. */
    void topics(Collection<String> topics) {
        Map<Uuid, String> all = new HashMap<>(names);
        topics.forEach(name -> all.put(Images.id(name), name));
        names = all;
    }

    // --- messages ------------------------------------------------------------------------------------------

    void request(ConsumerGroupHeartbeatRequestData data, Out out) {
        out.put("member_id", data.memberId()).put("generation", data.memberEpoch());
        out.put("instance", data.instanceId());
        if (data.topicPartitions() != null) {
            TreeSet<String> owned = new TreeSet<>();
            data.topicPartitions().forEach(one -> named(one.topicId(), one.partitions(), owned));
            out.put("owned", owned);
        }
        if (data.subscribedTopicNames() != null) {
            out.put("topics", data.subscribedTopicNames());
        }
    }

    void response(ConsumerGroupHeartbeatResponseData data, Out out) {
        out.put("member_id", data.memberId()).put("generation", data.memberEpoch());
        if (failure != null) {
            out.put("failure", failure);
            failure = null;
        }
        if (data.assignment() != null) {
            TreeSet<String> parts = new TreeSet<>();
            data.assignment().topicPartitions().forEach(one -> named(one.topicId(), one.partitions(), parts));
            out.put("assignment", parts);
        }
    }

    private void named(Uuid topic, Collection<Integer> indexes, TreeSet<String> into) {
        String name = names.getOrDefault(topic, String.valueOf(topic));
        indexes.forEach(index -> into.add(name + "-" + index));
    }

    /** A request that a member sends who is played; what {@code given} does not say is as a client leaves it. */
    @SuppressWarnings("unchecked")
    AbstractRequest played(String api, Map<String, Object> given) {
        String id = (String) given.getOrDefault("member_id", "");
        String instance = (String) given.get("instance");
        int generation = ((Long) given.getOrDefault("generation", -1L)).intValue();
        List<String> parts = (List<String>) given.get("partitions");
        switch (ApiKeys.valueOf(api)) {
            case CONSUMER_GROUP_HEARTBEAT:
                ConsumerGroupHeartbeatRequestData data = new ConsumerGroupHeartbeatRequestData().setGroupId("g")
                    .setMemberId(id).setMemberEpoch(generation).setInstanceId(instance)
                    .setServerAssignor((String) given.get("assignor"))
                    .setRebalanceTimeoutMs(((Long) given.getOrDefault("rebalance_ms", -1L)).intValue());
                if (given.get("topics") != null) {
                    data.setSubscribedTopicNames((List<String>) given.get("topics"));
                }
                if (given.get("regex") != null) {
                    set(data, "setSubscribedTopicRegex", given.get("regex")); // since 4.0
                }
                if (parts != null) {
                    List<ConsumerGroupHeartbeatRequestData.TopicPartitions> owned = new ArrayList<>();
                    byTopic(parts).forEach((topic, indexes) -> owned.add(
                        new ConsumerGroupHeartbeatRequestData.TopicPartitions()
                            .setTopicId(Images.id(topic)).setPartitions(indexes)));
                    data.setTopicPartitions(owned);
                }
                return new ConsumerGroupHeartbeatRequest(data, ApiKeys.CONSUMER_GROUP_HEARTBEAT.latestVersion());
            case OFFSET_COMMIT:
                OffsetCommitRequestData commit = new OffsetCommitRequestData().setGroupId("g").setMemberId(id)
                    .setGenerationIdOrMemberEpoch(generation).setGroupInstanceId(instance);
                byTopic(parts).forEach((topic, indexes) -> {
                    OffsetCommitRequestData.OffsetCommitRequestTopic one =
                        new OffsetCommitRequestData.OffsetCommitRequestTopic().setName(Images.name(topic));
                    set(one, "setTopicId", Images.id(topic)); // since 4.1: KIP-1251 looks for it
                    indexes.forEach(index -> one.partitions().add(
                        new OffsetCommitRequestData.OffsetCommitRequestPartition()
                            .setPartitionIndex(index).setCommittedOffset(0)));
                    commit.topics().add(one);
                });
                return new OffsetCommitRequest(commit, BY_NAME);
            case JOIN_GROUP:
                return ClassicMembers.join(id, instance, given);
            case SYNC_GROUP:
                return ClassicMembers.sync(id, instance, generation, given);
            case HEARTBEAT:
                return new HeartbeatRequest.Builder(new HeartbeatRequestData().setGroupId("g").setMemberId(id)
                    .setGenerationId(generation).setGroupInstanceId(instance)).build();
            case LEAVE_GROUP:
                return new LeaveGroupRequest.Builder("g", List.of(new LeaveGroupRequestData.MemberIdentity()
                    .setMemberId(id).setGroupInstanceId(instance))).build();
            default:
                throw new IllegalArgumentException("nobody who is played sends " + api);
        }
    }

    /** A field, where a request of this release has it. */
    private static void set(Object data, String setter, Object value) {
        for (Method method : data.getClass().getMethods()) {
            if (method.getName().equals(setter)) {
                Shapes.call(method, data, value);
            }
        }
    }

    private static Map<String, List<Integer>> byTopic(List<String> parts) {
        Map<String, List<Integer>> found = new TreeMap<>();
        for (String part : parts) {
            int dash = part.lastIndexOf('-');
            found.computeIfAbsent(part.substring(0, dash), key -> new ArrayList<>())
                .add(Integer.valueOf(part.substring(dash + 1)));
        }
        return found;
    }

    // --- what the coordinator knows ------------------------------------------------------------------------

    /** The group, if it is one of the consumer protocol; false for another. */
    boolean state(Object group, Out out) {
        if (!call(group, "type").toString().equals(CONSUMER)) {
            return false;
        }
        out.name("consumer").open('{');
        out.put("state", call(group, "stateAsString").toString());
        out.put("epoch", (Integer) call(group, "groupEpoch"));
        out.put("assignment_epoch", (Integer) call(group, "assignmentEpoch"));
        Map<?, ?> targets = (Map<?, ?>) call(group, "targetAssignment");
        out.name("members").open('[');
        Map<?, ?> members = (Map<?, ?>) call(group, "members");
        for (Object id : new TreeSet<>(members.keySet())) {
            Object one = members.get(id);
            out.open('{').put("id", (String) id).put("client", (String) call(one, "clientId"));
            out.put("instance", (String) call(one, "instanceId")).put("epoch", (Integer) call(one, "memberEpoch"));
            out.put("previous", (Integer) call(one, "previousMemberEpoch"));
            out.put("state", call(one, "state").toString());
            out.put("classic", ((Optional<?>) call(one, "classicMemberMetadata")).isPresent());
            out.put("assigned", parts((Map<?, ?>) call(one, "assignedPartitions")));
            out.put("pending", parts((Map<?, ?>) call(one, "partitionsPendingRevocation")));
            Object target = targets.get(id);
            out.put("target", target == null ? List.of() : parts((Map<?, ?>) call(target, "partitions")));
            out.close('}');
        }
        out.close(']').close('}');
        return true;
    }

    /** A member of the group; null where there is none. */
    Object oneOf(Object group) {
        return ((Map<?, ?>) call(group, "members")).values().stream().findFirst().orElse(null);
    }

    /** Of indexes by topic, which since 4.3 have epochs beside them. */
    private Collection<String> parts(Map<?, ?> byTopic) {
        TreeSet<String> found = new TreeSet<>();
        byTopic.forEach((topic, indexes) -> {
            Collection<?> all = indexes instanceof Map ? ((Map<?, ?>) indexes).keySet() : (Collection<?>) indexes;
            all.forEach(index -> named((Uuid) topic, List.of((Integer) index), found));
        });
        return found;
    }

    /** The method without parameters. */
    private static Object call(Object of, String name) {
        Method method = METHODS.computeIfAbsent(of.getClass().getName() + "." + name,
            key -> Shapes.plain(of.getClass(), name));
        return Shapes.call(method, of);
    }
}
