package org.apache.kafka.coordinator.group;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatRequest;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatResponse;
import org.apache.kafka.common.requests.HeartbeatRequest;
import org.apache.kafka.common.requests.HeartbeatResponse;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.OffsetCommitResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.SyncGroupRequest;
import org.apache.kafka.common.requests.SyncGroupResponse;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.timeline.SnapshotRegistry;
import rebalance.cell.Out;
import rebalance.cell.Parts;
import rebalance.cell.Shapes;
import rebalance.cell.VirtualTime;

/**
 * GroupCoordinatorShard, unchanged, with what CoordinatorRuntime and GroupCoordinatorService do around it: the log,
 * what waits for it, the timers, and the errors of a coordinator that loads or is no coordinator.
 */
public final class ShippedCoordinator extends VirtualTime implements Parts.Coordinator {
    private static final ClassLoader LOADER = ShippedCoordinator.class.getClassLoader();
    private static final String RUNTIME = "org.apache.kafka.coordinator.common.runtime.";
    private static final String RUNTIME_38 = "org.apache.kafka.coordinator.group.runtime.";
    private static final Class<?> TIMER = runtime("CoordinatorTimer");
    private static final Class<?> RESULT = runtime("CoordinatorResult");
    private static final Class<?> LOG_CONTEXT = Shapes.type(LOADER,
        "org.apache.kafka.common.utils.LogContext",
        "org.apache.kafka.common.utils.internals.LogContext"); // since 4.4
    private static final Method GENERATE =
        Shapes.method(runtime("CoordinatorTimer$TimeoutOperation"), "generateRecords");
    private static final Method RECORDS = Shapes.method(RESULT, "records");
    private static final Method RESPONSE = Shapes.method(RESULT, "response");
    private static final Method APPENDED = Shapes.method(RESULT, "appendFuture");
    private static final Method REPLAYED = Shapes.method(RESULT, "replayRecords");
    private static final Method JOIN = Shapes.method(GroupCoordinatorShard.class, "classicGroupJoin");
    private static final Method SYNC = Shapes.method(GroupCoordinatorShard.class, "classicGroupSync");
    private static final Method HEARTBEAT = Shapes.method(GroupCoordinatorShard.class, "classicGroupHeartbeat");
    private static final Method LEAVE = Shapes.method(GroupCoordinatorShard.class, "classicGroupLeave");
    private static final Method COMMIT = Shapes.method(GroupCoordinatorShard.class, "commitOffset");
    private static final Method REPLAY = replayOf();
    private static final Method SERVE = Shapes.method(GroupCoordinatorShard.class, "consumerGroupHeartbeat");
    private static final Field MANAGER = Shapes.field(GroupCoordinatorShard.class, "groupMetadataManager");
    private static final Field PENDING_JOINS = Shapes.field(ClassicGroup.class, "pendingJoinMembers");
    private static final Field PENDING_SYNCS = Shapes.field(ClassicGroup.class, "pendingSyncMembers");
    private static final String GROUP = "g";
    private static final long REFRESH_MS = 11 * 60_000; // more than the longest time between two resolutions of patterns

    private final GroupCoordinatorMetrics metrics = new GroupCoordinatorMetrics();
    private final Object logContext = Shapes.make(LOG_CONTEXT);
    private final Descriptions descriptions = new Descriptions();
    private final ConsumerGroups consumerGroups = new ConsumerGroups();
    private final Images images = new Images();
    private final Map<Map<String, Object>, GroupCoordinatorConfig> configs = new HashMap<>();
    private final Object timer = Proxy.newProxyInstance(LOADER, new Class<?>[] {TIMER}, this::scheduled);
    private final Object executor = executorOf();

    private GroupCoordinatorConfig config;
    private Map<String, Integer> topics = Map.of();
    private Map<String, List<String>> racks = Map.of();
    private GroupCoordinatorShard shard;
    private GroupMetadataManager manager;
    private long sequence;
    private Errors unavailable;
    private boolean held;
    private Object[] resolving;
    private final TreeMap<String, Due> timers = new TreeMap<>();
    private final List<Object> log = new ArrayList<>();
    private final ArrayDeque<Write> writes = new ArrayDeque<>();

    /** A timer that was set. */
    private static final class Due {
        String key;
        long deadline;
        long sequence;
        Object operation;
    }

    /** A result of the shard that waits for its records, or for those before it, to be committed. */
    private static final class Write {
        List<?> records;
        CompletableFuture<Void> appended;
        Object response;
        BiConsumer<Object, Throwable> then;
    }

    /** A request that was read. */
    private static final class Request {
        RequestContext context;
        AbstractRequest body;
    }

    // --- shapes ------------------------------------------------------------------------------------------

    private static Class<?> runtime(String name) {
        return Shapes.type(LOADER, RUNTIME_38 + name, RUNTIME + name);
    }

    private static Method replayOf() {
        for (Method method : GroupCoordinatorShard.class.getDeclaredMethods()) {
            if (method.getName().equals("replay") && !method.isBridge()) {
                return method;
            }
        }
        throw new IllegalStateException("GroupCoordinatorShard.replay");
    }

    /** Only regular expressions of the consumer protocol run there: the newest task waits until it is called for. */
    private Object executorOf() {
        try {
            Class<?> type = Class.forName(RUNTIME + "CoordinatorExecutor", true, LOADER);
            return Proxy.newProxyInstance(LOADER, new Class<?>[] {type}, (proxy, method, arguments) -> {
                if (method.getName().equals("schedule")) {
                    resolving = arguments;
                    return true;
                }
                return method.getReturnType() == boolean.class ? (Object) false : null;
            });
        } catch (ClassNotFoundException before40) {
            return null;
        }
    }

    private GroupCoordinatorConfig configOf(Map<String, Object> given) {
        Map<String, Object> properties = new HashMap<>();
        given.forEach((name, value) -> properties.put(name, value.toString()));
        Thread.currentThread().setContextClassLoader(LOADER); // by which it finds the assignors that it names
        if (GroupCoordinatorConfig.class.getDeclaredConstructors()[0].getParameterCount() > 1) {
            return Config38.of(properties);
        }
        ConfigDef all = new ConfigDef();
        List<Class<?>> types = new ArrayList<>(List.of(GroupCoordinatorConfig.class));
        try {
            types.add(Class.forName("org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig"));
        } catch (ClassNotFoundException before40) {
            // it has none
        }
        for (Class<?> type : types) {
            for (Field field : type.getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers()) && field.getType() == ConfigDef.class) {
                    field.setAccessible(true);
                    for (ConfigDef.ConfigKey one : ((ConfigDef) Shapes.get(field, null)).configKeys().values()) {
                        if (!all.names().contains(one.name)) {
                            all.define(one);
                        }
                    }
                }
            }
        }
        AbstractConfig values = new AbstractConfig(all, properties, false);
        abstractConfig = values;
        return Shapes.make(GroupCoordinatorConfig.class, values);
    }

    private AbstractConfig abstractConfig;

    private void build() {
        timers.clear();
        Object registry = Shapes.make(SnapshotRegistry.class, logContext);
        List<Object> given = new ArrayList<>(List.of(config));
        try {
            Class<?> type = Class.forName("org.apache.kafka.coordinator.group.GroupConfigManager");
            List<Object> of = new ArrayList<>(List.of(new HashMap<String, Object>(), config));
            if (abstractConfig != null && hasShare()) {
                Class<?> share = Class.forName("org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig");
                of.add(Shapes.make(share, abstractConfig));
            }
            given.add(Shapes.make(type, of.toArray()));
        } catch (ClassNotFoundException before40) {
            // without
        }
        Object builder = Shapes.make(GroupCoordinatorShard.Builder.class, given.toArray());
        Class<?> type = GroupCoordinatorShard.Builder.class;
        for (Method method : type.getMethods()) {
            if (!method.getName().startsWith("with") || method.isBridge()) {
                continue;
            }
            method.setAccessible(true);
            Object value = part(method.getName(), registry);
            Shapes.call(method, builder, value);
        }
        shard = ((GroupCoordinatorShard.Builder) builder).build();
        manager = (GroupMetadataManager) Shapes.get(MANAGER, shard);
    }

    private static boolean hasShare() {
        try {
            Class.forName("org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig");
            return true;
        } catch (ClassNotFoundException before40) {
            return false;
        }
    }

    private Object part(String name, Object registry) {
        switch (name) {
            case "withLogContext":
                return logContext;
            case "withTime":
                return this;
            case "withTimer":
                return timer;
            case "withExecutor":
                return executor;
            case "withCoordinatorMetrics":
                return metrics;
            case "withTopicPartition":
                return new TopicPartition("__consumer_offsets", 0);
            case "withSnapshotRegistry":
                return registry;
            case "withAuthorizer":
            case "withAuthorizerPlugin":
                return Optional.empty();
            default:
                throw new IllegalStateException("GroupCoordinatorShard.Builder." + name);
        }
    }

    // --- time ----------------------------------------------------------------------------------------------

    /** CoordinatorTimer: schedule, scheduleIfAbsent, cancel, isScheduled. */
    private Object scheduled(Object proxy, Method method, Object[] arguments) {
        switch (method.getName()) {
            case "scheduleIfAbsent":
                if (timers.containsKey(arguments[0])) {
                    return null;
                }
                // fall through
            case "schedule":
                Due due = new Due();
                due.key = (String) arguments[0];
                due.deadline = now + ((TimeUnit) arguments[2]).toMillis((Long) arguments[1]);
                due.sequence = sequence++;
                due.operation = arguments[arguments.length - 1];
                timers.put(due.key, due);
                return null;
            case "cancel":
                timers.remove(arguments[0]);
                return null;
            case "isScheduled":
                return timers.containsKey(arguments[0]);
            case "hashCode":
                return 0;
            case "equals":
                return proxy == arguments[0];
            default:
                return "timer";
        }
    }

    @Override
    public void elapse(long ms) {
        long until = now + ms;
        for (Due due = earliest(until); due != null; due = earliest(until)) {
            now = Math.max(now, due.deadline);
            fire(due);
        }
        now = until;
    }

    private Due earliest(long until) {
        Due found = null;
        for (Due one : timers.values()) {
            boolean before = found == null || one.deadline < found.deadline
                || one.deadline == found.deadline && one.sequence < found.sequence;
            if (one.deadline <= until && before) {
                found = one;
            }
        }
        return found;
    }

    @Override
    public boolean expire(String kind, String member) {
        if (kind.equals("patterns")) {
            return resolve();
        }
        Due due = timers.get(kind.equals("session") ? GroupMetadataManager.classicGroupHeartbeatKey(GROUP, member)
            : kind.equals("rebalance") ? GroupMetadataManager.classicGroupJoinKey(GROUP)
            : kind.equals("sync") ? GroupMetadataManager.classicGroupSyncKey(GROUP) : kind);
        if (due != null) {
            fire(due);
        }
        return due != null;
    }

    /**
     * The patterns of the group are resolved. Time goes on until that is due, and the timers wait so much longer; then
     * the coordinator looks whether it is, as at a heartbeat without news.
     */
    private boolean resolve() {
        now += REFRESH_MS;
        timers.values().forEach(due -> due.deadline += REFRESH_MS);
        resolving = null;
        Object group = manager.group(GROUP);
        RequestContext context = context(new RequestHeader(ApiKeys.CONSUMER_GROUP_HEARTBEAT,
            ApiKeys.CONSUMER_GROUP_HEARTBEAT.latestVersion(), "", 0));
        Object member = consumerGroups.oneOf(group);
        if (member != null) {
            Method look = Shapes.method(GroupMetadataManager.class, "maybeUpdateRegularExpressions"); // since 4.0
            Shapes.call(look, manager, context, group, member, member, new ArrayList<>());
        }
        if (resolving == null) {
            return false;
        }
        Object found = Shapes.call(Shapes.method(runtime("CoordinatorExecutor$TaskRunnable"), "run"), resolving[1]);
        Method takes = Shapes.method(runtime("CoordinatorExecutor$TaskOperation"), "onComplete");
        written(Shapes.call(takes, resolving[2], found, null), (response, error) -> { });
        return true;
    }

    private void fire(Due due) {
        timers.remove(due.key);
        written(Shapes.call(GENERATE, due.operation), (response, error) -> { });
    }

    // --- the log -------------------------------------------------------------------------------------------

    @SuppressWarnings("unchecked")
    private void written(Object result, BiConsumer<Object, Throwable> then) {
        Write write = new Write();
        write.records = (List<?>) Shapes.call(RECORDS, result);
        write.appended = (CompletableFuture<Void>) Shapes.call(APPENDED, result);
        write.response = Shapes.call(RESPONSE, result);
        write.then = then;
        if ((Boolean) Shapes.call(REPLAYED, result)) {
            long offset = log.size();
            for (Object record : write.records) {
                replay(offset++, record);
            }
        }
        if (held && !write.records.isEmpty() || !writes.isEmpty()) {
            writes.add(write);
        } else {
            complete(write, null);
        }
    }

    private void replay(long offset, Object record) {
        Shapes.call(REPLAY, shard, offset, -1L, (short) -1, record);
    }

    private void complete(Write write, Throwable error) {
        if (error == null) {
            log.addAll(write.records);
        }
        if (write.appended != null && error == null) {
            write.appended.complete(null);
        } else if (write.appended != null) {
            write.appended.completeExceptionally(error);
        }
        write.then.accept(write.response, error);
    }

    @Override
    public void hold(boolean held) {
        this.held = held;
    }

    @Override
    public boolean append(String error, boolean logged) {
        Write write = writes.poll();
        if (write == null) {
            return false;
        }
        if (error != null && logged) {
            log.addAll(write.records);
        }
        complete(write, error == null ? null : Errors.valueOf(error).exception());
        while (!writes.isEmpty() && writes.peek().records.isEmpty()) { // reads, which waited for it
            complete(writes.poll(), null);
        }
        return true;
    }

    @Override
    public void failover(int keep, boolean loading, Map<String, Object> given) {
        List<Object> kept = new ArrayList<>(log);
        for (Write write : writes) {
            kept.addAll(write.records);
        }
        if (keep >= 0 && keep < kept.size()) {
            kept.subList(keep, kept.size()).clear();
        }
        shard.onUnloaded();
        List<Write> waiting = new ArrayList<>(writes);
        writes.clear();
        for (Write write : waiting) {
            complete(write, Errors.NOT_COORDINATOR.exception());
        }
        log.clear();
        log.addAll(kept);
        config = given == null ? config : configs.computeIfAbsent(given, this::configOf);
        load();
        unavailable = loading ? Errors.COORDINATOR_LOAD_IN_PROGRESS : null;
    }

    private void load() {
        build();
        long offset = 0;
        for (Object record : log) {
            replay(offset++, record);
        }
        images.loaded(shard, topics);
    }

    @Override
    public void reset(Map<String, Object> given, Map<String, Integer> existing) {
        config = configs.computeIfAbsent(given, this::configOf);
        topics = existing;
        consumerGroups.topics(existing.keySet());
        now = 1_000_000;
        sequence = 0;
        unavailable = null;
        held = false;
        log.clear();
        writes.clear();
        descriptions.forget();
        load();
    }

    @Override
    public void topics(Map<String, Integer> existing) {
        topics = existing;
        consumerGroups.topics(existing.keySet());
        if (shard != null) {
            images.updated(shard, existing);
        }
    }

    @Override
    public void racks(Map<String, List<String>> existing) {
        racks = existing;
    }

    @Override
    public void available(String how) {
        unavailable = how.equals("active") ? null
            : how.equals("loading") ? Errors.COORDINATOR_LOAD_IN_PROGRESS : Errors.NOT_COORDINATOR;
    }

    // --- requests --------------------------------------------------------------------------------------------

    @Override
    public short newest(short api) {
        return ApiKeys.hasId(api) ? ApiKeys.forId(api).latestVersion() : -1;
    }

    @Override
    public Object read(ByteBuffer bytes) {
        RequestHeader header = RequestHeader.parse(bytes);
        Request request = new Request();
        request.context = context(header);
        request.body = request.context.parseRequest(bytes).request;
        return request;
    }

    @Override
    public Object played(String api, String client, Map<String, Object> fields) {
        AbstractRequest body = consumerGroups.played(api, fields);
        Request request = new Request();
        request.context = context(new RequestHeader(body.apiKey(), body.version(), client, 0));
        request.body = body;
        return request;
    }

    private static RequestContext context(RequestHeader header) {
        return new RequestContext(header, "0", InetAddress.getLoopbackAddress(), KafkaPrincipal.ANONYMOUS,
            new ListenerName("CELL"), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    }

    @Override
    public void describe(Object object, Out out) {
        if (object instanceof Request) {
            Request request = (Request) object;
            out.put("api", request.context.header.apiKey().name).put("version", request.context.apiVersion());
            descriptions.request(request.body, out);
            if (request.body instanceof ConsumerGroupHeartbeatRequest) {
                consumerGroups.request(((ConsumerGroupHeartbeatRequest) request.body).data(), out);
            }
        } else {
            descriptions.response((AbstractResponse) object, out);
            if (object instanceof ConsumerGroupHeartbeatResponse) {
                consumerGroups.response(((ConsumerGroupHeartbeatResponse) object).data(), out);
            }
        }
    }

    @Override
    public void handle(Object object, Parts.Reply reply) {
        Request request = (Request) object;
        AbstractRequest body = request.body;
        short version = request.context.apiVersion();
        java.util.function.Consumer<AbstractResponse> answer = response ->
            reply.answer(request.context.buildResponseEnvelopePayload(response), response);
        if (!descriptions.ofCluster(body, topics, racks, version, answer)) {
            try {
                if (unavailable != null) {
                    throw unavailable.exception();
                }
                group(request.context, body, version, answer);
            } catch (ApiException error) {
                answer.accept(refusal(body, error));
            } catch (RuntimeException error) { // as CoordinatorRuntime: the client is told UNKNOWN_SERVER_ERROR
                if (!(body instanceof ConsumerGroupHeartbeatRequest)) {
                    throw error;
                }
                consumerGroups.failed(error);
                answer.accept(refusal(body, error));
            }
        }
    }

    private void group(
        RequestContext context, AbstractRequest body, short version, java.util.function.Consumer<AbstractResponse> answer
    ) {
        if (body instanceof JoinGroupRequest) {
            CompletableFuture<JoinGroupResponseData> future = new CompletableFuture<>();
            future.thenAccept(data -> answer.accept(new JoinGroupResponse(data, version)));
            Object data = ((JoinGroupRequest) body).data();
            Object result = JOIN.getParameterCount() == 3 ? Shapes.call(JOIN, shard, context, data, future)
                : Shapes.call(JOIN, shard, context, data, future, true); // topologyCleanupHandled, since 4.4
            written(result, (none, error) -> {
                if (error != null) {
                    future.complete(new JoinGroupResponseData().setErrorCode(coded(error).code()));
                }
            });
        } else if (body instanceof SyncGroupRequest) {
            CompletableFuture<SyncGroupResponseData> future = new CompletableFuture<>();
            future.thenAccept(data -> answer.accept(new SyncGroupResponse(data)));
            written(Shapes.call(SYNC, shard, context, ((SyncGroupRequest) body).data(), future), (none, error) -> {
                if (error != null) {
                    future.complete(new SyncGroupResponseData().setErrorCode(coded(error).code()));
                }
            });
        } else if (body instanceof HeartbeatRequest) {
            HeartbeatRequestData data = ((HeartbeatRequest) body).data();
            written(Shapes.call(HEARTBEAT, shard, context, data), (response, error) -> answer.accept(error != null
                ? refusal(body, error) : new HeartbeatResponse((HeartbeatResponseData) response)));
        } else if (body instanceof LeaveGroupRequest) {
            LeaveGroupRequestData data = ((LeaveGroupRequest) body).normalizedData();
            written(Shapes.call(LEAVE, shard, context, data), (response, error) -> answer.accept(error != null
                ? refusal(body, error) : new LeaveGroupResponse((LeaveGroupResponseData) response, version)));
        } else if (body instanceof OffsetCommitRequest) {
            OffsetCommitRequestData data = ((OffsetCommitRequest) body).data();
            written(Shapes.call(COMMIT, shard, context, data), (response, error) -> answer.accept(error != null
                ? refusal(body, error) : new OffsetCommitResponse((OffsetCommitResponseData) response)));
        } else if (body instanceof ConsumerGroupHeartbeatRequest) {
            Object result = Shapes.call(SERVE, shard, context, ((ConsumerGroupHeartbeatRequest) body).data());
            written(result, (response, error) -> answer.accept(error != null ? refusal(body, error)
                : new ConsumerGroupHeartbeatResponse((ConsumerGroupHeartbeatResponseData) response)));
        } else {
            throw Errors.UNSUPPORTED_VERSION.exception();
        }
    }

    /** CoordinatorOperationExceptionHelper.handleOperationException. */
    private static Errors coded(Throwable error) {
        Errors code = Errors.forException(error);
        switch (code) {
            case UNKNOWN_TOPIC_OR_PARTITION:
            case NOT_ENOUGH_REPLICAS:
            case REQUEST_TIMED_OUT:
                return Errors.COORDINATOR_NOT_AVAILABLE;
            case NOT_LEADER_OR_FOLLOWER:
            case KAFKA_STORAGE_ERROR:
                return Errors.NOT_COORDINATOR;
            case MESSAGE_TOO_LARGE:
            case RECORD_LIST_TOO_LARGE:
            case INVALID_FETCH_SIZE:
                return Errors.UNKNOWN_SERVER_ERROR;
            default:
                return code;
        }
    }

    /** What GroupCoordinatorService answers after an exception: heartbeat and leaveGroup have exceptions to it. */
    private static AbstractResponse refusal(AbstractRequest body, Throwable error) {
        Errors code = coded(error);
        if (body instanceof HeartbeatRequest) {
            Errors blind = code == Errors.COORDINATOR_LOAD_IN_PROGRESS ? Errors.NONE : code;
            return new HeartbeatResponse(new HeartbeatResponseData().setErrorCode(blind.code()));
        }
        if (body instanceof LeaveGroupRequest && code == Errors.UNKNOWN_MEMBER_ID) {
            List<LeaveGroupResponseData.MemberResponse> members = new ArrayList<>();
            for (LeaveGroupRequestData.MemberIdentity one : ((LeaveGroupRequest) body).normalizedData().members()) {
                members.add(new LeaveGroupResponseData.MemberResponse().setMemberId(one.memberId())
                    .setGroupInstanceId(one.groupInstanceId()).setErrorCode(code.code()));
            }
            return new LeaveGroupResponse(new LeaveGroupResponseData().setMembers(members), body.version());
        }
        return body.getErrorResponse(0, code.exception());
    }

    // --- state -----------------------------------------------------------------------------------------------

    @Override
    public void state(Out out) {
        out.put("now", now).put("log", log.size()).put("waiting", writes.size()).put("held", held);
        out.put("available", unavailable == null ? "active"
            : unavailable == Errors.NOT_COORDINATOR ? "gone" : "loading");
        out.name("timers").open('{');
        for (Due one : timers.values()) {
            out.put(one.key, one.deadline - now);
        }
        out.close('}');
        ClassicGroup group = null;
        try {
            if (consumerGroups.state(manager.group(GROUP), out)) {
                out.put("state", (String) null);
                return;
            }
            group = manager.getOrMaybeCreateClassicGroup(GROUP, false);
        } catch (ApiException none) {
            // there is none
        }
        out.put("state", group == null ? null : group.currentState().name());
        if (group == null) {
            return;
        }
        out.put("generation", group.generationId()).put("leader", group.leaderOrNull());
        out.put("protocol", group.protocolName().orElse(null));
        List<ClassicGroupMember> members = new ArrayList<>(group.allMembers());
        members.sort((a, b) -> a.memberId().compareTo(b.memberId()));
        out.name("members").open('[');
        for (ClassicGroupMember one : members) {
            out.open('{').put("id", one.memberId()).put("client", one.clientId());
            out.put("instance", one.groupInstanceId().orElse(null)).put("new", one.isNew());
            out.put("joining", one.isAwaitingJoin()).put("syncing", one.isAwaitingSync());
            descriptions.protocols(one.supportedProtocols(), out);
            descriptions.assignment("assigned", one.assignment(), out);
            out.close('}');
        }
        out.close(']');
        out.put("pending_joins", sorted(PENDING_JOINS, group)).put("pending_syncs", sorted(PENDING_SYNCS, group));
    }

    @SuppressWarnings("unchecked")
    private static List<String> sorted(Field field, ClassicGroup group) {
        List<String> found = new ArrayList<>((Collection<String>) Shapes.get(field, group));
        Collections.sort(found);
        return found;
    }
}
