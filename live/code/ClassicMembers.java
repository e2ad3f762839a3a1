package org.apache.kafka.coordinator.group;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.common.requests.SyncGroupRequest;

/** Requests of members of the classic protocol that are played, as the newest client writes them. */
final class ClassicMembers {
    private static final String TYPE = "consumer";
    private static final String PROTOCOL = "played"; // all of them have this one, where they list no others

    private ClassicMembers() {
    }

    /** It claims {@code partitions} of {@code generation}, in each of its {@code protocols}; {@code noise} is its user
     * data. */
    @SuppressWarnings("unchecked")
    static AbstractRequest join(String id, String instance, Map<String, Object> given) {
        int generation = ((Long) given.getOrDefault("generation", -1L)).intValue();
        ByteBuffer noise = ByteBuffer.allocate(4).putInt(0, ((Long) given.getOrDefault("noise", 0L)).intValue());
        Subscription claim = new Subscription((List<String>) given.get("topics"), noise,
            partitions((List<String>) given.get("partitions")), generation, Optional.empty());
        JoinGroupRequestData.JoinGroupRequestProtocolCollection protocols =
            new JoinGroupRequestData.JoinGroupRequestProtocolCollection();
        for (String name : (List<String>) given.getOrDefault("protocols", List.of(PROTOCOL))) {
            protocols.add(new JoinGroupRequestData.JoinGroupRequestProtocol().setName(name)
                .setMetadata(bytes(ConsumerProtocol.serializeSubscription(claim))));
        }
        JoinGroupRequestData data = new JoinGroupRequestData().setGroupId("g").setMemberId(id)
            .setGroupInstanceId(instance).setProtocolType(TYPE).setProtocols(protocols)
            .setSessionTimeoutMs(45_000).setRebalanceTimeoutMs(300_000);
        return new JoinGroupRequest(data, ApiKeys.JOIN_GROUP.latestVersion());
    }

    /** With what a leader assigns, by member id. */
    @SuppressWarnings("unchecked")
    static AbstractRequest sync(String id, String instance, int generation, Map<String, Object> given) {
        List<SyncGroupRequestData.SyncGroupRequestAssignment> assigned = new ArrayList<>();
        ((Map<String, Object>) given.getOrDefault("assignments", Map.of())).forEach((member, parts) ->
            assigned.add(new SyncGroupRequestData.SyncGroupRequestAssignment().setMemberId(member).setAssignment(
                bytes(ConsumerProtocol.serializeAssignment(new Assignment(partitions((List<String>) parts)))))));
        SyncGroupRequestData data = new SyncGroupRequestData().setGroupId("g").setMemberId(id)
            .setGroupInstanceId(instance).setGenerationId(generation).setProtocolType(TYPE)
            .setProtocolName((String) given.getOrDefault("protocol", PROTOCOL)).setAssignments(assigned);
        return new SyncGroupRequest(data, ApiKeys.SYNC_GROUP.latestVersion());
    }

    /** By name, as the classic protocol knows them: a topic that was made anew has the name of the one before. */
    private static List<TopicPartition> partitions(List<String> names) {
        List<TopicPartition> made = new ArrayList<>();
        for (String name : names) {
            int dash = name.lastIndexOf('-');
            made.add(new TopicPartition(Images.name(name.substring(0, dash)),
                Integer.parseInt(name.substring(dash + 1))));
        }
        return made;
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] all = new byte[buffer.remaining()];
        buffer.duplicate().get(all);
        return all;
    }
}
