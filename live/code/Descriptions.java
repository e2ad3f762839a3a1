package org.apache.kafka.coordinator.group;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FindCoordinatorResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FindCoordinatorRequest;
import org.apache.kafka.common.requests.FindCoordinatorResponse;
import org.apache.kafka.common.requests.HeartbeatRequest;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.SyncGroupRequest;
import org.apache.kafka.common.requests.SyncGroupResponse;
import rebalance.cell.Out;

/** What messages say, as JSON; and the answers of a broker beside its coordinator (FindCoordinator, Metadata). */
final class Descriptions {
    private static final String HOST = "localhost";
    private static final int PORT = 9092;

    private final Map<ByteBuffer, Claim> claims = new HashMap<>();
    private final Map<ByteBuffer, Object> assignments = new HashMap<>();

    void request(AbstractRequest body, Out out) {
        if (body instanceof JoinGroupRequest) {
            JoinGroupRequestData data = ((JoinGroupRequest) body).data();
            out.put("member_id", data.memberId()).put("instance", data.groupInstanceId());
            protocols(data.protocols(), out);
        } else if (body instanceof SyncGroupRequest) {
            SyncGroupRequestData data = ((SyncGroupRequest) body).data();
            out.put("member_id", data.memberId()).put("generation", data.generationId());
            out.name("assignments").open('{');
            for (SyncGroupRequestData.SyncGroupRequestAssignment one : data.assignments()) {
                assignment(one.memberId(), one.assignment(), out);
            }
            out.close('}');
        } else if (body instanceof HeartbeatRequest) {
            HeartbeatRequestData data = ((HeartbeatRequest) body).data();
            out.put("member_id", data.memberId()).put("generation", data.generationId());
        } else if (body instanceof LeaveGroupRequest) {
            List<String> ids = new ArrayList<>();
            for (LeaveGroupRequestData.MemberIdentity one : ((LeaveGroupRequest) body).members()) {
                ids.add(one.memberId());
            }
            out.put("member_id", ids.isEmpty() ? "" : ids.get(0));
        } else if (body instanceof OffsetCommitRequest) {
            OffsetCommitRequestData data = ((OffsetCommitRequest) body).data();
            out.put("member_id", data.memberId()).put("generation", data.generationIdOrMemberEpoch());
            TreeSet<String> names = new TreeSet<>();
            for (OffsetCommitRequestData.OffsetCommitRequestTopic topic : data.topics()) {
                topic.partitions().forEach(one -> names.add(topic.name() + "-" + one.partitionIndex()));
            }
            out.put("partitions", names);
        }
    }

    void response(AbstractResponse body, Out out) {
        Errors error = Errors.NONE;
        for (Map.Entry<Errors, Integer> one : body.errorCounts().entrySet()) {
            error = one.getKey() == Errors.NONE ? error : one.getKey();
        }
        out.put("api", body.apiKey().name).put("error", error.name());
        if (body instanceof JoinGroupResponse) {
            JoinGroupResponseData data = ((JoinGroupResponse) body).data();
            out.put("generation", data.generationId()).put("member_id", data.memberId());
            out.put("leader", data.leader()).put("protocol", data.protocolName());
            out.put("skip_assignment", data.skipAssignment());
            out.name("members").open('[');
            for (JoinGroupResponseData.JoinGroupResponseMember one : data.members()) {
                out.open('{').put("id", one.memberId()).put("instance", one.groupInstanceId());
                subscription(one.metadata(), out);
                out.close('}');
            }
            out.close(']');
        } else if (body instanceof SyncGroupResponse) {
            SyncGroupResponseData data = ((SyncGroupResponse) body).data();
            out.put("protocol", data.protocolName());
            assignment("assignment", data.assignment(), out);
        }
    }

    void protocols(JoinGroupRequestData.JoinGroupRequestProtocolCollection protocols, Out out) {
        out.name("protocols").open('[');
        for (JoinGroupRequestData.JoinGroupRequestProtocol one : protocols) {
            out.open('{').put("name", one.name());
            subscription(one.metadata(), out);
            out.close('}');
        }
        out.close(']');
    }

    /** Of a Subscription, read once: the coordinator has each for as long as its member does not change it. */
    private static final class Claim {
        int version;
        Collection<String> topics;
        Collection<String> owned;
        Integer generation;
        Integer user; // CooperativeStickyAssignor's generation
        String unreadable;
    }

    private static Claim claim(ByteBuffer bytes) {
        Claim made = new Claim();
        try {
            Subscription read = ConsumerProtocol.deserializeSubscription(bytes.duplicate());
            made.topics = new TreeSet<>(read.topics());
            made.owned = names(read.ownedPartitions());
            made.version = bytes.getShort(0);
            made.generation = read.generationId().orElse(null);
            ByteBuffer user = read.userData();
            made.user = user != null && user.remaining() == 4 ? user.getInt(user.position()) : null;
        } catch (RuntimeException unreadable) {
            made.unreadable = unreadable.toString();
        }
        return made;
    }

    private void subscription(byte[] bytes, Out out) {
        Claim claim = claims.computeIfAbsent(ByteBuffer.wrap(bytes), Descriptions::claim);
        if (claim.unreadable != null) {
            out.put("unreadable", claim.unreadable);
            return;
        }
        out.put("version", claim.version).put("topics", claim.topics).put("owned", claim.owned);
        if (claim.generation != null) {
            out.put("generation", claim.generation);
        }
        if (claim.user != null) {
            out.put("user_generation", claim.user);
        }
    }

    void assignment(String name, byte[] bytes, Out out) {
        if (bytes.length == 0) {
            out.put(name, (String) null);
            return;
        }
        Object read = assignments.computeIfAbsent(ByteBuffer.wrap(bytes), Descriptions::assigned);
        if (read instanceof String) {
            out.put(name, (String) read);
        } else {
            out.put(name, (Collection<?>) read);
        }
    }

    /** The names of the partitions, or why they cannot be read. */
    private static Object assigned(ByteBuffer bytes) {
        try {
            return names(ConsumerProtocol.deserializeAssignment(bytes.duplicate()).partitions());
        } catch (RuntimeException unreadable) {
            return unreadable.toString();
        }
    }

    /** Nothing of another group is kept. */
    void forget() {
        claims.clear();
        assignments.clear();
    }

    private static TreeSet<String> names(Iterable<TopicPartition> partitions) {
        TreeSet<String> made = new TreeSet<>();
        partitions.forEach(one -> made.add(one.topic() + "-" + one.partition()));
        return made;
    }

    /** Answers a request that is not the group coordinator's; false for others. */
    boolean ofCluster(
        AbstractRequest body, Map<String, Integer> topics, Map<String, List<String>> racks, short version,
        Consumer<AbstractResponse> answer
    ) {
        if (body instanceof FindCoordinatorRequest) {
            FindCoordinatorResponseData data = new FindCoordinatorResponseData();
            if (version < FindCoordinatorRequest.MIN_BATCHED_VERSION) {
                data.setNodeId(0).setHost(HOST).setPort(PORT);
            } else {
                for (String key : ((FindCoordinatorRequest) body).data().coordinatorKeys()) {
                    data.coordinators().add(new FindCoordinatorResponseData.Coordinator().setKey(key).setNodeId(0)
                        .setHost(HOST).setPort(PORT));
                }
            }
            answer.accept(new FindCoordinatorResponse(data));
            return true;
        }
        if (body instanceof MetadataRequest) {
            answer.accept(new MetadataResponse(metadata((MetadataRequest) body, topics, racks), version));
            return true;
        }
        return false;
    }

    /** One broker is everything but the place of those partitions that have a rack: each rack has a broker for them. */
    private static MetadataResponseData metadata(
        MetadataRequest request, Map<String, Integer> topics, Map<String, List<String>> racks
    ) {
        MetadataResponseData data = new MetadataResponseData().setClusterId("cell").setControllerId(0);
        data.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(0).setHost(HOST).setPort(PORT));
        List<String> all = new ArrayList<>();
        racks.values().forEach(some -> some.stream().filter(one -> !all.contains(one)).forEach(all::add));
        for (String rack : all) {
            data.brokers().add(new MetadataResponseData.MetadataResponseBroker().setNodeId(1 + all.indexOf(rack))
                .setHost(HOST).setPort(PORT).setRack(rack));
        }
        List<String> wanted = request.topics() == null ? new ArrayList<>(topics.keySet()) : request.topics();
        for (String name : wanted) {
            Integer count = topics.get(name);
            MetadataResponseData.MetadataResponseTopic topic = new MetadataResponseData.MetadataResponseTopic()
                .setName(name).setTopicId(count == null ? Uuid.ZERO_UUID : Images.id(name))
                .setErrorCode((count == null ? Errors.UNKNOWN_TOPIC_OR_PARTITION : Errors.NONE).code());
            for (int i = 0; count != null && i < count; i++) {
                List<Integer> replicas = List.of(racks.containsKey(name) ? 1 + all.indexOf(racks.get(name).get(i)) : 0);
                topic.partitions().add(new MetadataResponseData.MetadataResponsePartition().setPartitionIndex(i)
                    .setLeaderId(0).setLeaderEpoch(1).setReplicaNodes(replicas).setIsrNodes(replicas));
            }
            data.topics().add(topic);
        }
        return data;
    }
}
