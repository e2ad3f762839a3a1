package rebalance.cell;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** What a cell is made of, in types of the JDK alone: each part is loaded beside its own release of Kafka. */
public final class Parts {
    private Parts() {
    }

    /** One group coordinator with its log, its clock and its timers. */
    public interface Coordinator {
        /** A new coordinator that has never written a record. */
        void reset(Map<String, Object> config, Map<String, Integer> topics);

        /** The newest version of an API that it understands; -1 of none. */
        short newest(short api);

        /** A request as on the wire, header and body, read. */
        Object read(ByteBuffer request);

        /** A request of a member who is played, read: its fields by the names that {@link #describe} has. */
        Object played(String api, String client, Map<String, Object> fields);

        /** The fields of a request that was read. */
        void describe(Object request, Out out);

        /** The request arrives; the reply may come in any later call, or never. */
        void handle(Object request, Reply reply);

        void topics(Map<String, Integer> topics);

        /** On which rack each partition is, by topic; those of others are on none. */
        void racks(Map<String, List<String>> racks);

        /** So many milliseconds pass, and each timer that is due fires, in the order of their deadlines. */
        void elapse(long ms);

        /** The timer of {@code kind} fires now: session (of a member id), rebalance, sync, or a key as it is. */
        boolean expire(String kind, String member);

        /** Whether what is written waits for {@link #append}. */
        void hold(boolean held);

        /**
         * The oldest write that waits is committed, or fails with this error, and is in the log all the same where it
         * is {@code logged}; false if none waits.
         */
        boolean append(String error, boolean logged);

        /** Another broker takes over with the first {@code keep} records, -1 all; null for one of the same config. */
        void failover(int keep, boolean loading, Map<String, Object> config);

        /** The coordinator has loaded its log, or is not the coordinator: active, loading, gone. */
        void available(String how);

        void state(Out out);
    }

    /** Where the answer to a request goes: as on the wire, and as an object for {@link Coordinator#describe}. */
    public interface Reply {
        void answer(ByteBuffer response, Object described);
    }

    /** One consumer: ConsumerCoordinator, its network client and its clock. */
    public interface Consumer {
        void start(Map<String, Object> settings, Network network);

        void poll();

        /** What the heartbeat thread does first in each round: responses that have arrived are looked at. */
        void network();

        void subscribe(Collection<String> topics);

        void unsubscribe();

        void enforceRebalance();

        /** What reading does with the order of partitions: that of which something was read goes to the end. */
        void fetched(String topic, int partition);

        void commit(boolean sync);

        void close(long timeoutMs);

        /** A duty of the heartbeat thread: heartbeat, session, poll. False: the thread would do nothing. */
        boolean duty(String name);

        void respond(int correlation, ByteBuffer response);

        /** The request is answered with this error, whatever became of it. */
        void refuse(int correlation, String error);

        /** Connections to a node end, to all nodes for null. */
        void disconnect(String destination);

        void refresh();

        void throwing(String call);

        void elapse(long ms);

        void state(Out out);
    }

    /** What a consumer's client reaches. */
    public interface Network {
        short newest(short api);

        /** A request leaves. */
        void sent(int correlation, String destination, short api, ByteBuffer request);

        /** The client closes its connection to a node. */
        void closed(String destination);

        /** A call waits: whether anything was handed to the client meanwhile. */
        boolean waits();

        /** The answer to a request that NetworkClient sends by itself (Metadata). */
        ByteBuffer ask(ByteBuffer request);

        /** Where what happens is written. */
        Out event(String name);
    }
}
