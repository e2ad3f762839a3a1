package org.apache.kafka.clients.consumer.internals;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.GroupRebalanceConfig;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.Metadata;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.requests.MetadataResponse;
import rebalance.cell.Out;
import rebalance.cell.Parts;
import rebalance.cell.Shapes;
import rebalance.cell.VirtualTime;

/**
 * ConsumerCoordinator, unchanged, on a client and a clock of ours; around it what KafkaConsumer (ClassicKafkaConsumer)
 * calls, and the duties of its heartbeat thread, which is there and never started.
 */
public final class ShippedConsumer extends VirtualTime
    implements Parts.Consumer, ConsumerRebalanceListener {
    private static final ClassLoader LOADER = ShippedConsumer.class.getClassLoader();
    private static final String INTERNALS = "org.apache.kafka.clients.consumer.internals.";
    private static final String CONSUMER = "org.apache.kafka.clients.consumer.";
    private static final String DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
    private static final Map<String, String> ASSIGNORS = Map.of("range", CONSUMER + "RangeAssignor",
        "roundrobin", CONSUMER + "RoundRobinAssignor", "sticky", CONSUMER + "StickyAssignor",
        "cooperative-sticky", CONSUMER + "CooperativeStickyAssignor");
    private static final Class<?> LOG_CONTEXT = Shapes.type(LOADER,
        "org.apache.kafka.common.utils.LogContext",
        "org.apache.kafka.common.utils.internals.LogContext"); // since 4.4
    private static final Object EARLIEST = Shapes.get(Shapes.field(Shapes.type(LOADER,
        INTERNALS + "AutoOffsetResetStrategy", // since 4.0
        CONSUMER + "OffsetResetStrategy"), "EARLIEST"), null);
    private static final Object CONSUMER_PROTOCOL = Shapes.get(Shapes.field(
        GroupRebalanceConfig.ProtocolType.class, "CONSUMER"), null);
    private static final Object LISTENERS = new ClusterResourceListeners();

    private static final Class<?> THREAD = Shapes.type(LOADER, INTERNALS + "AbstractCoordinator$HeartbeatThread");
    private static final Field HEARTBEAT_THREAD = Shapes.field(AbstractCoordinator.class, "heartbeatThread");
    private static final Field ENABLED = Shapes.field(THREAD, "enabled");
    private static final Field FAILED = Shapes.field(THREAD, "failed", "failureCause");
    private static final Method HAS_NOT_JOINED = hasNotJoined();
    private static final Method SEND_HEARTBEAT = Shapes.method(AbstractCoordinator.class, "sendHeartbeatRequest");
    private static final Method SESSION_EXPIRED =
        Shapes.exact(AbstractCoordinator.class, "markCoordinatorUnknown", String.class);
    private static final Method SESSION_EXPIRED_24 = // before 2.8
        Shapes.exact(AbstractCoordinator.class, "markCoordinatorUnknown");
    private static final Method POLL_EXPIRED = pollExpired();
    private static final Method LEAVE = Shapes.method(AbstractCoordinator.class, "maybeLeaveGroup");
    private static final Method CLOSE = closing();
    private static final Method REJOIN = Shapes.method(AbstractCoordinator.class, "requestRejoin");
    private static final boolean ENFORCES = enforces();
    private static final Method SUBSCRIBE = subscribing();
    private static final Method FOR_NEW_TOPICS = forNewTopics();
    private static final Method UPDATE = updating();

    private static final Method GROUP_METADATA = Shapes.exact(ConsumerCoordinator.class, "groupMetadata");
    private static final Field STATE = Shapes.field(AbstractCoordinator.class, "state");
    private static final Field GENERATION = Shapes.field(AbstractCoordinator.class, "generation");
    private static final Field PROTOCOL =
        Shapes.field(AbstractCoordinator.Generation.class, "protocol", "protocolName"); // since 2.6
    private static final Field REJOIN_NEEDED = Shapes.field(AbstractCoordinator.class, "rejoinNeeded");
    private static final Field NEEDS_PREPARE = Shapes.field(AbstractCoordinator.class, "needsJoinPrepare");
    private static final Field JOIN_FUTURE = Shapes.field(AbstractCoordinator.class, "joinFuture");

    private static final Map<Map<String, Object>, ConsumerConfig> CONFIGS = new HashMap<>();

    private Parts.Network network;
    private SubscriptionState subscriptions;
    private ConsumerMetadata metadata;
    private boolean leaves; // when it is closed: an option of close since 4.1, before it a setting
    private CellClient client;
    private ConsumerNetworkClient net;
    private ConsumerCoordinator coordinator;
    private String throwing;

    // --- shapes ----------------------------------------------------------------------------------------------

    private static Method hasNotJoined() {
        Class<?> states = Shapes.type(LOADER, INTERNALS + "AbstractCoordinator$MemberState");
        return Shapes.exact(states, "hasNotJoinedGroup");
    }

    private static Method pollExpired() {
        return Shapes.exact(AbstractCoordinator.class, "handlePollTimeoutExpiry"); // since 4.1, else maybeLeaveGroup
    }

    private static Method closing() {
        Method plain = Shapes.exact(ConsumerCoordinator.class, "close", org.apache.kafka.common.utils.Timer.class);
        return plain != null ? plain : Shapes.method(ConsumerCoordinator.class, "close");
    }

    private static boolean enforces() {
        for (Method method : org.apache.kafka.clients.consumer.KafkaConsumer.class.getMethods()) {
            if (method.getName().equals("enforceRebalance")) {
                return true;
            }
        }
        return false;
    }

    private static Method subscribing() {
        Method old = Shapes.exact(
            SubscriptionState.class, "subscribe", Set.class, ConsumerRebalanceListener.class);
        return old != null ? old : Shapes.exact(SubscriptionState.class, "subscribe", Set.class, Optional.class);
    }

    private static Method forNewTopics() {
        Method found = Shapes.exact(Metadata.class, "requestUpdateForNewTopics");
        return found != null ? found : Shapes.method(Metadata.class, "requestUpdate");
    }

    private static Method updating() {
        Method old = Shapes.exact(Metadata.class, "update", MetadataResponse.class, long.class); // 2.4
        return old != null ? old : Shapes.exact(
            Metadata.class, "updateWithCurrentRequestVersion", MetadataResponse.class, boolean.class, long.class);
    }

    /** The arguments of a method that takes a GroupMembershipOperation since 4.1. */
    private static Object[] leaving(Method method, Object other, boolean otherFirst, String named) {
        if (method.getParameterCount() == 1) {
            return new Object[] {other};
        }
        Object operation = Shapes.get(
            Shapes.field(method.getParameterTypes()[otherFirst ? 1 : 0], named), null);
        return otherFirst ? new Object[] {other, operation} : new Object[] {operation, other};
    }

    // --- its process -----------------------------------------------------------------------------------------

    @Override
    public void start(Map<String, Object> settings, Parts.Network reached) {
        network = reached;
        String clientId = (String) settings.get("client");
        Map<String, Object> properties = properties(settings);
        boolean option = CLOSE.getParameterCount() > 1;
        leaves = !option || !"false".equals(properties.remove("internal.leave.group.on.close"));
        ConsumerConfig config = CONFIGS.computeIfAbsent(properties, ConsumerConfig::new);
        Object logContext = Shapes.make(LOG_CONTEXT);
        client = new CellClient(this, network, clientId);
        KafkaClient proxy = client.proxy();
        subscriptions = Shapes.make(SubscriptionState.class, logContext, EARLIEST);
        metadata = Shapes.make(ConsumerMetadata.class, 0L, Long.MAX_VALUE, Long.MAX_VALUE, false, false,
            subscriptions, logContext, LISTENERS);
        net = Shapes.make(ConsumerNetworkClient.class, logContext, proxy, metadata, this, 100L, 30_000,
            Integer.MAX_VALUE);
        Metrics metrics = new Metrics(this);
        String rack = config.getString("client.rack");
        coordinator = Shapes.make(ConsumerCoordinator.class,
            new GroupRebalanceConfig(config, (GroupRebalanceConfig.ProtocolType) CONSUMER_PROTOCOL), logContext, net,
            assignors(settings, config), metadata, subscriptions, metrics, "consumer", this,
            config.getBoolean("enable.auto.commit"), config.getInt("auto.commit.interval.ms"),
            Shapes.make(ConsumerInterceptors.class, new ArrayList<>(), metrics), false, rack == null ? "" : rack,
            Optional.empty(), Optional.empty());
        try {
            HEARTBEAT_THREAD.set(coordinator, Shapes.make(THREAD, coordinator)); // never started
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
        subscribe(strings(settings.get("topics")));
    }

    @SuppressWarnings("unchecked")
    private static Collection<String> strings(Object list) {
        return list == null ? List.of() : (Collection<String>) list;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> properties(Map<String, Object> settings) {
        Map<String, Object> made = new HashMap<>();
        made.put("bootstrap.servers", "localhost:9092");
        made.put("group.id", "g");
        made.put("client.id", settings.get("client"));
        made.put("key.deserializer", DESERIALIZER);
        made.put("value.deserializer", DESERIALIZER);
        made.put("enable.auto.commit", "false");
        if (settings.get("instance") != null) {
            made.put("group.instance.id", settings.get("instance"));
        }
        Object more = settings.get("config");
        if (more != null) {
            ((Map<String, Object>) more).forEach((name, value) -> made.put(name, value.toString()));
        }
        return made;
    }

    private static List<ConsumerPartitionAssignor> assignors(Map<String, Object> settings, ConsumerConfig config) {
        List<ConsumerPartitionAssignor> made = new ArrayList<>();
        for (String name : strings(settings.get("assignors"))) {
            Class<?> type = Shapes.type(LOADER, ASSIGNORS.getOrDefault(name, name));
            Object one = Shapes.make(type);
            if (one instanceof Configurable) {
                ((Configurable) one).configure(config.originals());
            }
            made.add((ConsumerPartitionAssignor) one);
        }
        return made;
    }

    // --- what the application calls --------------------------------------------------------------------------

    @Override
    public void poll() {
        coordinator.poll(timer(0));
        net.pollNoWakeup();
    }

    @Override
    public void network() {
        net.pollNoWakeup();
    }

    @Override
    public void subscribe(Collection<String> topics) {
        if (topics.isEmpty()) {
            return;
        }
        Set<String> set = new HashSet<>(topics);
        Object listener = SUBSCRIBE.getParameterTypes()[1] == Optional.class ? Optional.of(this) : this;
        if ((Boolean) Shapes.call(SUBSCRIBE, subscriptions, set, listener)) {
            Shapes.call(FOR_NEW_TOPICS, metadata);
            refresh();
        }
    }

    @Override
    public void unsubscribe() {
        coordinator.onLeavePrepare();
        Shapes.call(LEAVE, coordinator, leaving(LEAVE, "the consumer unsubscribed from all topics", false, "DEFAULT"));
        subscriptions.unsubscribe();
        net.pollNoWakeup();
    }

    @Override
    public void enforceRebalance() {
        if (!ENFORCES) {
            throw new UnsupportedOperationException("KafkaConsumer.enforceRebalance is there since 2.6");
        }
        Object[] reason = REJOIN.getParameterCount() == 0 ? new Object[0]
            : REJOIN.getParameterCount() == 1 ? new Object[] {"rebalance enforced by user"}
            : new Object[] {"rebalance enforced by user", "rebalance enforced by user"};
        Shapes.call(REJOIN, coordinator, reason);
    }

    @Override
    public void fetched(String topic, int partition) { // as Fetcher calls it
        subscriptions.movePartitionToEnd(new TopicPartition(topic, partition));
    }

    @Override
    public void commit(boolean sync) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        subscriptions.assignedPartitions().forEach(one -> offsets.put(one, new OffsetAndMetadata(0)));
        if (sync) {
            boolean done = coordinator.commitOffsetsSync(offsets, timer(60_000));
            network.event("committed").put("sync", true).put("error", done ? null : "TimeoutException").close('}');
        } else {
            coordinator.commitOffsetsAsync(offsets, (committed, error) -> network.event("committed")
                .put("sync", false).put("error", error == null ? null : error.getClass().getSimpleName()).close('}'));
            net.pollNoWakeup();
        }
    }

    @Override
    public void close(long timeoutMs) {
        Shapes.call(CLOSE, coordinator, leaving(CLOSE, timer(timeoutMs), true, leaves ? "DEFAULT" : "REMAIN_IN_GROUP"));
    }

    @Override
    public void throwing(String call) {
        throwing = call;
    }

    // --- the duties of the heartbeat thread ------------------------------------------------------------------

    @Override
    public boolean duty(String name) {
        Object thread = Shapes.get(HEARTBEAT_THREAD, coordinator);
        if (thread == null || !enabled(thread) || idle() || coordinator.coordinatorUnknown()) {
            return false;
        }
        switch (name) {
            case "heartbeat":
                heartbeat(thread);
                break;
            case "session":
                if (SESSION_EXPIRED != null) {
                    Shapes.call(SESSION_EXPIRED, coordinator,
                        "session timed out without receiving a heartbeat response");
                } else {
                    Shapes.call(SESSION_EXPIRED_24, coordinator);
                }
                break;
            case "poll":
                if (POLL_EXPIRED != null) {
                    Shapes.call(POLL_EXPIRED, coordinator);
                } else {
                    Shapes.call(LEAVE, coordinator, leaving(LEAVE, "consumer poll timeout has expired.", false, "DEFAULT"));
                }
                break;
            default:
                throw new IllegalArgumentException(name);
        }
        net.pollNoWakeup();
        return true;
    }

    private static boolean enabled(Object thread) {
        Object value = Shapes.get(ENABLED, thread);
        return value instanceof Boolean ? (Boolean) value
            : ((java.util.concurrent.atomic.AtomicBoolean) value).get();
    }

    /** Whether the thread disables itself: before 2.7 unless STABLE, since then where it has not joined. */
    private boolean idle() {
        Object state = Shapes.get(STATE, coordinator);
        return HAS_NOT_JOINED == null ? !state.toString().equals("STABLE") : (Boolean) Shapes.call(HAS_NOT_JOINED, state);
    }

    /** HeartbeatThread.run: what it does when a heartbeat is due, with its listener. */
    @SuppressWarnings("unchecked")
    private void heartbeat(Object thread) {
        Heartbeat timers = coordinator.heartbeat();
        timers.sentHeartbeat(now);
        RequestFuture<Void> future = (RequestFuture<Void>) Shapes.call(SEND_HEARTBEAT, coordinator);
        future.addListener(new RequestFutureListener<Void>() {
            @Override
            public void onSuccess(Void value) {
                timers.receiveHeartbeat();
            }

            @Override
            public void onFailure(RuntimeException error) {
                if (error instanceof RebalanceInProgressException) {
                    timers.receiveHeartbeat();
                } else if (error instanceof FencedInstanceIdException) {
                    ((java.util.concurrent.atomic.AtomicReference<RuntimeException>) Shapes.get(FAILED, thread))
                        .set(error);
                } else {
                    timers.failHeartbeat();
                }
            }
        });
    }

    // --- the network -----------------------------------------------------------------------------------------

    @Override
    public void respond(int correlation, java.nio.ByteBuffer response) {
        client.respond(correlation, response);
    }

    @Override
    public void refuse(int correlation, String error) {
        client.refuse(correlation, error);
    }

    @Override
    public void disconnect(String destination) {
        client.disconnect(destination);
    }

    @Override
    public void refresh() {
        MetadataResponse response = (MetadataResponse) client.ask(metadata.newMetadataRequestBuilder());
        if (UPDATE.getParameterCount() == 2) {
            Shapes.call(UPDATE, metadata, response, now);
        } else {
            Shapes.call(UPDATE, metadata, response, false, now);
        }
        network.event("metadata").close('}');
    }

    boolean refreshIfRequested() {
        boolean requested = metadata.updateRequested();
        if (requested) {
            refresh();
        }
        return requested;
    }

    // --- callbacks -------------------------------------------------------------------------------------------

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        for (TopicPartition one : partitions) {
            subscriptions.seek(one, 0); // as if there were no offset: what is committed is 0
        }
        called("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        called("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        called("lost", partitions);
    }

    private void called(String name, Collection<TopicPartition> partitions) {
        Out event = network.event("callback").put("call", name).put("partitions", names(partitions))
            .put("owned", names(subscriptions.assignedPartitions()))
            .put("generation", generation().generationId);
        if (GROUP_METADATA != null) { // since 2.5
            event.put("shown_generation",
                ((ConsumerGroupMetadata) Shapes.call(GROUP_METADATA, coordinator)).generationId());
        }
        event.close('}');
        if (throwing != null && (throwing.isEmpty() || throwing.equals(name))) {
            throwing = null;
            throw new IllegalStateException("the listener throws, as the caller wants it");
        }
    }

    private static Collection<String> names(Collection<TopicPartition> partitions) {
        Collection<String> made = new TreeSet<>();
        partitions.forEach(one -> made.add(one.topic() + "-" + one.partition()));
        return made;
    }

    // --- state -----------------------------------------------------------------------------------------------

    private AbstractCoordinator.Generation generation() {
        return (AbstractCoordinator.Generation) Shapes.get(GENERATION, coordinator);
    }

    @Override
    public void state(Out out) {
        AbstractCoordinator.Generation generation = generation();
        Object thread = Shapes.get(HEARTBEAT_THREAD, coordinator);
        out.put("state", Shapes.get(STATE, coordinator).toString()).put("now", now);
        out.put("generation", generation.generationId).put("member_id", generation.memberId);
        out.put("protocol", (String) Shapes.get(PROTOCOL, generation));
        Collection<TopicPartition> owned = subscriptions.assignedPartitions();
        Collection<TopicPartition> fetchable = new ArrayList<>(owned);
        fetchable.removeIf(one -> !subscriptions.isFetchable(one));
        out.put("owned", names(owned)).put("fetchable", names(fetchable));
        Collection<String> topics = subscriptions.hasNoSubscriptionOrUserAssignment() ? Collections.emptyList()
            : new TreeSet<>(subscriptions.subscription());
        out.put("topics", topics).put("rejoin", (Boolean) Shapes.get(REJOIN_NEEDED, coordinator));
        out.put("joining", Shapes.get(JOIN_FUTURE, coordinator) != null);
        out.put("prepared", !(Boolean) Shapes.get(NEEDS_PREPARE, coordinator));
        out.put("coordinator_known", !coordinator.coordinatorUnknown());
        out.put("heartbeats", thread != null && enabled(thread) && !idle());
    }
}
