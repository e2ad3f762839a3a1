package org.apache.kafka.clients.consumer.internals;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.NetworkClient;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.RequestHeader;
import rebalance.cell.Parts;
import rebalance.cell.Shapes;

/**
 * In the stead of NetworkClient: what is sent goes to the caller of the cell as bytes, what it hands over is found by
 * the next poll. By a proxy, since KafkaClient.leastLoadedNode returns another type since 3.9.
 */
final class CellClient {
    private static final Method WITH_HEADER = first("serializeWithHeader", "serialize");
    private static final Class<?>[] MESSAGES = messages();
    private static final int FRUITLESS = 10_000;

    private final ShippedConsumer consumer;
    private final Parts.Network network;
    private final String clientId;
    private final Node node = new Node(0, "localhost", 9092);
    private final Map<Integer, Flight> flights = new LinkedHashMap<>();
    private final ArrayDeque<ClientResponse> arrived = new ArrayDeque<>();
    private int correlation;
    private int fruitless;
    private boolean refreshed; // since the last poll that did not wait

    /** A request without an answer so far. */
    private static final class Flight {
        ClientRequest request;
        RequestHeader header;
    }

    /** A call would wait for something that cannot come. */
    static final class Blocked extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Blocked() {
            super("the call waits for what nobody can send while it waits", null, false, false);
        }
    }

    CellClient(ShippedConsumer consumer, Parts.Network network, String clientId) {
        this.consumer = consumer;
        this.network = network;
        this.clientId = clientId;
    }

    KafkaClient proxy() {
        return (KafkaClient) Proxy.newProxyInstance(
            CellClient.class.getClassLoader(), new Class<?>[] {KafkaClient.class}, this::called);
    }

    private Object called(Object proxy, Method method, Object[] arguments) {
        switch (method.getName()) {
            case "poll":
                return poll((Long) arguments[0]);
            case "send":
                send((ClientRequest) arguments[0]);
                return null;
            case "isReady":
            case "ready":
            case "hasReadyNodes":
            case "active":
                return true;
            case "connectionFailed":
                return false;
            case "connectionDelay":
            case "pollDelayMs":
                return 0L;
            case "inFlightRequestCount":
                return arguments == null ? flights.size() : count((String) arguments[0]);
            case "hasInFlightRequests":
                return arguments == null ? !flights.isEmpty() : count((String) arguments[0]) > 0;
            case "leastLoadedNode":
                return method.getReturnType() == Node.class ? node
                    : (Object) Shapes.make(method.getReturnType(), node, true);
            case "newClientRequest":
                return request(arguments);
            case "disconnect":
            case "close":
                if (arguments != null) {
                    disconnect((String) arguments[0]);
                    network.closed((String) arguments[0]);
                }
                return null;
            case "hashCode":
                return 0;
            case "equals":
                return proxy == arguments[0];
            default: // authenticationException, wakeup, initiateClose
                return null;
        }
    }

    private int count(String destination) {
        int found = 0;
        for (Flight one : flights.values()) {
            found += one.request.destination().equals(destination) ? 1 : 0;
        }
        return found;
    }

    private ClientRequest request(Object[] given) {
        boolean whole = given.length > 4;
        return new ClientRequest((String) given[0], (AbstractRequest.Builder<?>) given[1], correlation++, clientId,
            (Long) given[2], (Boolean) given[3], whole ? (Integer) given[4] : 30_000,
            whole ? (RequestCompletionHandler) given[5] : null);
    }

    private void send(ClientRequest request) {
        ApiKeys api = request.requestBuilder().apiKey();
        short newest = network.newest(api.id);
        short version = (short) Math.min(newest, request.requestBuilder().latestAllowedVersion());
        AbstractRequest body = request.requestBuilder().build(version);
        RequestHeader header = request.makeHeader(version);
        Flight flight = new Flight();
        flight.request = request;
        flight.header = header;
        flights.put(request.correlationId(), flight);
        network.sent(request.correlationId(), request.destination(), api.id, bytes(header, body));
    }

    /** The request of {@code builder}, which NetworkClient would send by itself, answered at once. */
    AbstractResponse ask(AbstractRequest.Builder<?> builder) {
        ApiKeys api = builder.apiKey();
        short version = (short) Math.min(network.newest(api.id), builder.latestAllowedVersion());
        RequestHeader header = new RequestHeader(api, version, clientId, correlation++);
        return NetworkClient.parseResponse(network.ask(bytes(header, builder.build(version))), header);
    }

    void respond(int id, ByteBuffer response) {
        Flight flight = flights.remove(id);
        if (flight != null) {
            arrived.add(response(flight, NetworkClient.parseResponse(response, flight.header)));
        }
    }

    void refuse(int id, String error) {
        Flight flight = flights.remove(id);
        if (flight != null) { // of JoinGroup alone: getErrorResponse of 2.4 knows no newer versions
            JoinGroupResponseData data = new JoinGroupResponseData().setErrorCode(Errors.valueOf(error).code());
            Object body = Shapes.make(JoinGroupResponse.class, data, flight.header.apiVersion());
            arrived.add(response(flight, (AbstractResponse) body));
        }
    }

    void disconnect(String destination) {
        for (Iterator<Flight> all = flights.values().iterator(); all.hasNext();) {
            Flight one = all.next();
            if (destination == null || one.request.destination().equals(destination)) {
                all.remove();
                arrived.add(response(one, null));
            }
        }
    }

    private ClientResponse response(Flight flight, AbstractResponse body) {
        return new ClientResponse(flight.header, flight.request.callback(), flight.request.destination(),
            flight.request.createdTimeMs(), consumer.milliseconds(), body == null, null, null, body);
    }

    private List<ClientResponse> poll(long timeout) {
        if (arrived.isEmpty() && timeout > 0) {
            // once: metadata with a topic that does not exist is requested again at once
            boolean refreshes = !refreshed && consumer.refreshIfRequested();
            refreshed |= refreshes;
            if (refreshes || network.waits()) {
                fruitless = 0;
            } else if (fruitless++ > FRUITLESS || timeout > Integer.MAX_VALUE) {
                fruitless = 0;
                throw new Blocked();
            } else {
                consumer.elapse(timeout);
            }
        }
        refreshed &= timeout > 0;
        List<ClientResponse> found = new ArrayList<>(arrived.size());
        for (ClientResponse one = arrived.poll(); one != null; one = arrived.poll()) {
            found.add(one);
            one.onComplete();
        }
        return found;
    }

    // --- on the wire -----------------------------------------------------------------------------------------

    private static Method first(String... names) {
        for (String name : names) {
            Method found = Shapes.exact(AbstractRequest.class, name, RequestHeader.class);
            if (found != null) {
                return found;
            }
        }
        return null; // 2.8: there by RequestUtils alone
    }

    private static Class<?>[] messages() {
        ClassLoader loader = CellClient.class.getClassLoader();
        Class<?> message = Shapes.type(loader, "org.apache.kafka.common.protocol.Message");
        Class<?> utils = Shapes.type(loader, "org.apache.kafka.common.requests.RequestUtils");
        return new Class<?>[] {utils, message};
    }

    private static ByteBuffer bytes(RequestHeader header, AbstractRequest body) {
        if (WITH_HEADER != null) {
            return (ByteBuffer) Shapes.call(WITH_HEADER, body, header);
        }
        Class<?> message = MESSAGES[1];
        Method serialize = Shapes.exact(MESSAGES[0], "serialize", message, short.class, message, short.class);
        Object data = Shapes.call(Shapes.method(RequestHeader.class, "data"), header);
        short version = (Short) Shapes.call(Shapes.method(RequestHeader.class, "headerVersion"), header);
        Object content = Shapes.call(Shapes.method(body.getClass(), "data"), body);
        return (ByteBuffer) Shapes.call(serialize, null, data, version, content, header.apiVersion());
    }
}
