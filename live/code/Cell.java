package rebalance.cell;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;
import rebalance.processes.Json;

/**
 * One group: a coordinator and consumers of Kafka's own code, and between them every message in the hands of whoever
 * writes commands to stdin, a line of JSON each, and reads answers from stdout. Its arguments are
 * {@code coordinator:RELEASE=CLASSPATH} and {@code consumer:RELEASE=CLASSPATH}; each gets a class loader of its own.
 * A line {@code cells} is for several groups, each of which knows nothing of the others.
 */
public final class Cell {
    private static final String COORDINATOR = "org.apache.kafka.coordinator.group.ShippedCoordinator";
    private static final String CONSUMER = "org.apache.kafka.clients.consumer.internals.ShippedConsumer";

    private final Map<String, ClassLoader> loaders;
    private final Map<String, Parts.Coordinator> coordinators = new HashMap<>();
    private final Out out;
    private long[] ids = {1, 1}; // where they stand while another cell is at work

    private Map<String, Object> created = Map.of();
    private Parts.Coordinator coordinator;
    private final Map<String, Integer> topics = new LinkedHashMap<>();
    private final List<Member> members = new ArrayList<>();
    private final Member administrator = new Member(); // who sends and is none of them
    private final LinkedHashMap<Integer, Message> requests = new LinkedHashMap<>(); // under way to the coordinator
    private final LinkedHashMap<Integer, Message> responses = new LinkedHashMap<>(); // under way to a consumer
    private int messages;
    private boolean waiting; // a call that waits is helped
    private final Map<Object, byte[]> shown = new HashMap<>(); // of each part, the last that was answered

    /** A consumer's slot: its settings, and its process if there is one. */
    private static final class Member implements Iterable<Message> {
        int index;
        Map<String, Object> settings;
        Parts.Consumer consumer;
        Parts.Network network;
        final ArrayDeque<Message> open = new ArrayDeque<>(); // requests without an answer that was handed over

        @Override
        public Iterator<Message> iterator() {
            return open.iterator();
        }
    }

    /** A request, and its response when there is one. */
    private static final class Message {
        int id;
        Member member;
        int correlation;
        String destination;
        Object request;
        ByteBuffer response;
        boolean abandoned; // nobody waits for the response any more
    }

    private Cell(Map<String, ClassLoader> loaders, Out out) {
        this.loaders = loaders;
        this.out = out;
        administrator.index = -1;
        administrator.settings = Map.of("client", "admin");
    }

    private static Map<String, ClassLoader> loaders(String[] arguments) throws MalformedURLException {
        Map<String, ClassLoader> loaders = new HashMap<>();
        for (String one : arguments) {
            int at = one.indexOf('=');
            List<URL> urls = new ArrayList<>();
            for (String path : one.substring(at + 1).split(File.pathSeparator)) {
                urls.add(new File(path).toURI().toURL());
            }
            loaders.put(one.substring(0, at), new URLClassLoader(urls.toArray(new URL[0]), Cell.class.getClassLoader()));
        }
        return loaders;
    }

    public static void main(String[] arguments) throws Exception {
        OutputStream stdout = new FileOutputStream(FileDescriptor.out);
        System.setOut(System.err);
        Ids.install();
        Out out = new Out();
        Map<String, ClassLoader> loaders = loaders(arguments);
        Map<Long, Cell> cells = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        out.open('{').put("ready", true).close('}').send(stdout);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.clear();
            Map<String, Object> command = Json.object(line);
            out.open('{').put("number", number(command, "number", 0)); // an assignor may write lines of its own
            if ("cells".equals(command.get("do"))) {
                several(command, out, one -> cells.computeIfAbsent(one, any -> new Cell(loaders, out)));
            } else {
                cells.computeIfAbsent(0L, any -> new Cell(loaders, out)).line(command);
            }
            out.close('}').send(stdout);
        }
        Runtime.getRuntime().halt(0);
    }

    /** A line for each of several cells. */
    @SuppressWarnings("unchecked")
    private static void several(Map<String, Object> command, Out out, LongFunction<Cell> cells) {
        out.name("cells").open('[');
        for (Object one : (List<Object>) command.get("lines")) {
            Map<String, Object> line = (Map<String, Object>) one;
            Cell cell = cells.apply(number(line, "cell", 0));
            Ids.begin(cell.ids[0], cell.ids[1]);
            out.open('{');
            cell.line(line);
            out.close('}');
            cell.ids = Ids.position();
        }
        out.close(']');
    }

    private void line(Map<String, Object> command) {
        if ("batch".equals(command.get("do"))) {
            batch(command);
        } else {
            out.name("answer");
            answer(command);
        }
    }

    @SuppressWarnings("unchecked")
    private void batch(Map<String, Object> command) {
        out.name("answers").open('[');
        boolean stops = Boolean.TRUE.equals(command.get("stop"));
        boolean quiet = Boolean.TRUE.equals(command.get("quiet"));
        for (Object one : (List<Object>) command.get("commands")) {
            int before = out.length();
            boolean fine = answer((Map<String, Object>) one);
            if (fine && quiet) {
                out.cut(before);
                shown.clear();
            }
            if (!fine && stops) {
                break;
            }
        }
        out.close(']');
    }

    /** One answer; what was half written is taken back for an error. */
    private boolean answer(Map<String, Object> command) {
        int before = out.length();
        out.open('{').name("events").open('[');
        try {
            perform(command);
            return true;
        } catch (Refused refused) {
            out.cut(before);
            out.open('{').put("refused", refused.getMessage()).close('}');
        } catch (RuntimeException | Error error) {
            error.printStackTrace();
            out.cut(before);
            shown.clear();
            out.open('{').put("broken", String.valueOf(error)).close('}');
        }
        return false;
    }

    /** The caller wants what cannot be, as things are. */
    private static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Refused(String why) {
            super(why, null, false, false);
        }
    }

    // --- commands --------------------------------------------------------------------------------------------

    private void perform(Map<String, Object> command) {
        String what = (String) command.get("do");
        switch (what) {
            case "create":
                created = command;
                reset();
                break;
            case "reset":
                reset();
                break;
            case "ids":
                Ids.begin(number(command, "first", 1), number(command, "step", 1));
                break;
            case "state":
                out.close(']').name("state").open('{');
                state(Boolean.TRUE.equals(command.get("changes")));
                out.close('}').close('}');
                return;
            case "send":
                played(command.containsKey("member") ? member(command) : administrator, command);
                break;
            case "deliver":
                deliver(chosen(requests, command, "request"));
                break;
            case "drop":
                drop(chosen(requests, command, "request"));
                break;
            case "cut":
                Member played = member(command);
                refuseUnless(played.consumer == null, "member " + played.index + " has a process: disconnect it");
                cutOff(played, null, command.get("arrive"));
                break;
            case "respond":
                respond(chosen(responses, command, "response"));
                break;
            case "refuse":
                refuse(unanswered(command), (String) command.get("error"));
                break;
            case "lose":
                responses.remove(chosen(responses, command, "response").id);
                break;
            case "elapse":
                coordinator.elapse(number(command, "ms", 0));
                break;
            case "expire":
                String timer = (String) command.get("timer");
                refuseUnless(coordinator.expire(timer, (String) command.get("member_id")), "no such timer: " + timer);
                break;
            case "hold":
                coordinator.hold(!Boolean.FALSE.equals(command.get("on")));
                break;
            case "append":
                boolean logged = Boolean.TRUE.equals(command.get("logged"));
                refuseUnless(coordinator.append((String) command.get("error"), logged), "no write waits");
                break;
            case "failover":
                coordinator.failover((int) number(command, "keep", -1), Boolean.TRUE.equals(command.get("loading")),
                    settings(command.get("config")));
                break;
            case "coordinator":
                coordinator.available((String) command.get("available"));
                break;
            case "topics":
                topics(command.get("topics"));
                coordinator.racks(racks(command.get("racks")));
                coordinator.topics(topics);
                break;
            default:
                Member member = member(command);
                if (what.equals("start")) {
                    start(member, command);
                } else {
                    of(member, what, command);
                }
        }
        out.close(']').close('}');
    }

    private void of(Member member, String what, Map<String, Object> command) {
        refuseUnless(member.consumer != null, "member " + member.index + " has no process");
        Parts.Consumer consumer = member.consumer;
        switch (what) {
            case "crash":
                crash(member, command);
                return;
            case "disconnect":
                disconnect(member, command);
                return;
            case "heartbeat":
            case "session":
            case "max_poll":
                String duty = what.equals("max_poll") ? "poll" : what;
                waiting = false;
                refuseUnless(consumer.duty(duty), "the heartbeat thread has nothing to do");
                return;
            case "throw":
                consumer.throwing((String) command.getOrDefault("call", ""));
                return;
            case "clock":
                consumer.elapse(number(command, "ms", 0));
                return;
            default:
                waiting = !Boolean.FALSE.equals(command.get("help"));
                call(member, what, command);
        }
    }

    /** What an application calls: what it throws is an event. */
    private void call(Member member, String what, Map<String, Object> command) {
        Parts.Consumer consumer = member.consumer;
        int before = out.length();
        try {
            switch (what) {
                case "poll":
                    consumer.poll();
                    break;
                case "network":
                    consumer.network();
                    break;
                case "subscribe":
                    consumer.subscribe(strings(command.get("topics")));
                    break;
                case "unsubscribe":
                    consumer.unsubscribe();
                    break;
                case "enforce":
                    consumer.enforceRebalance();
                    break;
                case "fetched":
                    String read = (String) command.get("partition");
                    int dash = read.lastIndexOf('-');
                    consumer.fetched(read.substring(0, dash), Integer.parseInt(read.substring(dash + 1)));
                    break;
                case "commit":
                    consumer.commit(Boolean.TRUE.equals(command.get("sync")));
                    break;
                case "refresh":
                    consumer.refresh();
                    break;
                case "close":
                    consumer.close(number(command, "ms", 0));
                    crash(member, command);
                    break;
                default:
                    throw new Refused("no such command: " + what);
            }
        } catch (Refused refused) {
            throw refused;
        } catch (UnsupportedOperationException never) {
            out.cut(before);
            throw new Refused(String.valueOf(never.getMessage()));
        } catch (RuntimeException error) {
            Throwable cause = error.getCause();
            out.open('{').put("event", "thrown").put("member", member.index)
                .put("error", error.getClass().getName()).put("message", error.getMessage())
                .put("cause", cause == null ? null : cause.getClass().getName()).close('}');
            if (what.equals("close")) {
                crash(member, command);
            }
        }
    }

    // --- the group -------------------------------------------------------------------------------------------

    @SuppressWarnings("unchecked")
    private void reset() {
        String release = (String) created.get("coordinator");
        coordinator = coordinators.computeIfAbsent(release, one ->
            (Parts.Coordinator) made("coordinator:" + one, COORDINATOR));
        requests.clear();
        responses.clear();
        members.clear();
        administrator.open.clear();
        topics.clear();
        shown.clear();
        messages = 0;
        Ids.begin(1, 1);
        topics(created.get("topics"));
        coordinator.racks(racks(created.get("racks")));
        Object config = created.get("config");
        coordinator.reset(config == null ? Map.of() : (Map<String, Object>) config, topics);
        for (Object settings : (List<Object>) created.get("members")) {
            Member member = new Member();
            member.index = members.size();
            member.settings = (Map<String, Object>) settings;
            members.add(member);
        }
    }

    private Object made(String part, String name) {
        ClassLoader loader = loaders.get(part);
        refuseUnless(loader != null, "this cell was not started with " + part);
        Thread.currentThread().setContextClassLoader(loader);
        try {
            return Class.forName(name, true, loader).getDeclaredConstructor().newInstance();
        } catch (java.lang.reflect.InvocationTargetException error) {
            throw new IllegalStateException(part + ": " + error.getCause(), error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(part + ": " + error, error);
        }
    }

    private void topics(Object given) {
        topics.clear();
        if (given != null) {
            ((Map<?, ?>) given).forEach((name, count) -> topics.put((String) name, ((Long) count).intValue()));
        }
    }

    /** A process starts; what the command says of it holds from now on. */
    private void start(Member member, Map<String, Object> command) {
        refuseUnless(member.consumer == null, "member " + member.index + " has a process");
        Map<String, Object> settings = new HashMap<>(member.settings);
        for (String name : List.of("release", "assignors", "topics", "instance", "client", "config")) {
            if (command.containsKey(name)) {
                settings.put(name, command.get(name));
            }
        }
        settings.putIfAbsent("client", clientOf(member));
        member.settings = settings;
        member.network = new Link(member);
        Parts.Consumer consumer = (Parts.Consumer) made("consumer:" + settings.get("release"), CONSUMER);
        member.consumer = consumer;
        try {
            consumer.start(settings, member.network);
        } catch (RuntimeException error) {
            member.consumer = null;
            throw error;
        }
    }

    /** A process ends, and its connections with it. */
    private void crash(Member member, Map<String, Object> command) {
        cutOff(member, null, command.get("arrive"));
        member.consumer = null;
        member.network = null;
    }

    private void disconnect(Member member, Map<String, Object> command) {
        String destination = (String) command.get("destination");
        cutOff(member, destination, command.get("arrive"));
        member.consumer.disconnect(destination);
    }

    /**
     * Nobody waits for what is under way any more. Of the requests that have not arrived, those in {@code arrive} (ids,
     * or true for all) still do.
     */
    private void cutOff(Member member, String destination, Object arrive) {
        for (Iterator<Message> all = member.iterator(); all.hasNext();) {
            Message one = all.next();
            if (destination == null || destination.equals(one.destination)) {
                all.remove();
                one.abandoned = true;
                responses.remove(one.id);
                boolean arrives = Boolean.TRUE.equals(arrive)
                    || arrive instanceof Collection && ((Collection<?>) arrive).contains((long) one.id);
                if (!arrives) {
                    requests.remove(one.id);
                }
            }
        }
    }

    // --- messages --------------------------------------------------------------------------------------------

    private Message chosen(Map<Integer, Message> among, Map<String, Object> command, String kind) {
        Object id = command.get("id");
        if (id != null) {
            Message found = among.get(((Long) id).intValue());
            refuseUnless(found != null, "no " + kind + " " + id + " is under way");
            return found;
        }
        Member member = member(command);
        for (Message one : among.values()) {
            if (one.member == member && !one.abandoned) {
                return one;
            }
        }
        throw new Refused("no " + kind + " of member " + member.index + " is under way");
    }

    private void deliver(Message message) {
        requests.remove(message.id);
        coordinator.handle(message.request, (response, described) -> {
            out.open('{').put("event", "response").put("member", message.member.index).put("id", message.id);
            coordinator.describe(described, out);
            if (message.abandoned) {
                out.put("abandoned", true);
            } else {
                message.response = response;
                responses.put(message.id, message);
            }
            out.close('}');
        });
    }

    private void drop(Message message) {
        requests.remove(message.id);
    }

    /**
     * A member without a process sends, or an administrator; its answer is an event, and whoever plays it hears of it by
     * that.
     */
    private void played(Member member, Map<String, Object> command) {
        refuseUnless(member.consumer == null, "member " + member.index + " has a process, which speaks for itself");
        Message message = new Message();
        message.id = ++messages;
        message.member = member;
        message.request = coordinator.played((String) command.get("api"), clientOf(member), command);
        requests.put(message.id, message);
        member.open.add(message);
        out.open('{').put("event", "request").put("member", member.index).put("id", message.id);
        coordinator.describe(message.request, out);
        out.close('}');
    }

    private static String clientOf(Member member) {
        return (String) member.settings.getOrDefault("client", String.valueOf((char) ('A' + member.index)));
    }

    private void respond(Message message) {
        responses.remove(message.id);
        message.member.open.remove(message);
        if (message.member.consumer == null) {
            return; // who plays it has it by the event of the response
        }
        message.member.consumer.respond(message.correlation, message.response);
    }

    /** A request to which no answer was handed over, wherever it or its answer is. */
    private Message unanswered(Map<String, Object> command) {
        long id = number(command, "id", 0);
        for (Member member : members) {
            for (Message one : member) {
                if (one.id == id) {
                    return one;
                }
            }
        }
        throw new Refused("nobody waits for an answer to " + id);
    }

    /** What another coordinator would answer; ours may still have the request, and its answer goes nowhere. */
    private void refuse(Message message, String error) {
        requests.remove(message.id);
        responses.remove(message.id);
        message.member.open.remove(message);
        message.abandoned = true;
        message.member.consumer.refuse(message.correlation, error);
    }

    /** What a consumer's client reaches. */
    private final class Link implements Parts.Network {
        private final Member member;

        Link(Member member) {
            this.member = member;
        }

        @Override
        public short newest(short api) {
            return coordinator.newest(api);
        }

        @Override
        public void sent(int correlation, String destination, short api, ByteBuffer bytes) {
            Message message = new Message();
            message.id = ++messages;
            message.member = member;
            message.correlation = correlation;
            message.destination = destination;
            message.request = coordinator.read(bytes);
            requests.put(message.id, message);
            member.open.add(message);
            event("request").put("id", message.id);
            coordinator.describe(message.request, out);
            out.close('}');
        }

        @Override
        public void closed(String destination) {
            cutOff(member, destination, true);
            event("disconnected").put("destination", destination).close('}');
        }

        @Override
        public boolean waits() {
            if (!waiting) {
                return false;
            }
            for (Message one : new ArrayList<>(member.open)) {
                if (requests.containsKey(one.id)) {
                    deliver(one);
                }
            }
            boolean handed = false;
            for (Message one : new ArrayList<>(member.open)) {
                if (responses.containsKey(one.id)) {
                    respond(one);
                    event("responded").put("id", one.id).close('}');
                    handed = true;
                }
            }
            return handed;
        }

        @Override
        public ByteBuffer ask(ByteBuffer request) {
            ByteBuffer[] answer = new ByteBuffer[1];
            coordinator.handle(coordinator.read(request), (response, described) -> answer[0] = response);
            return answer[0];
        }

        @Override
        public Out event(String name) {
            return out.open('{').put("event", name).put("member", member.index);
        }
    }

    // --- state -----------------------------------------------------------------------------------------------

    /** The state of every part; {@code changes}: only of those that are not as they were shown last. */
    private void state(boolean changes) {
        if (!changes) {
            shown.clear();
        }
        part("coordinator", () -> {
            out.open('{');
            coordinator.state(out);
            out.close('}');
        });
        out.name("members").open('[');
        for (Member one : members) {
            int before = out.length();
            out.open('{').put("up", one.consumer != null);
            if (one.consumer != null) {
                one.consumer.state(out);
            }
            out.close('}');
            if (!isNew(one, before)) {
                out.cut(before);
                out.value((String) null);
            }
        }
        out.close(']');
        part("topics", () -> {
            out.open('{');
            topics.forEach(out::put);
            out.close('}');
        });
        part("requests", () -> under(requests));
        part("responses", () -> under(responses));
    }

    private void part(String name, Runnable writes) {
        int before = out.length();
        out.name(name);
        writes.run();
        if (!isNew(name, before)) {
            out.cut(before);
        }
    }

    /** Whether what was written of a part since {@code start} is not what was shown of it last. */
    private boolean isNew(Object part, int start) {
        boolean found = !out.is(shown.get(part), start);
        if (found) {
            shown.put(part, out.since(start));
        }
        return found;
    }

    private void under(Map<Integer, Message> among) {
        out.open('[');
        for (Message one : among.values()) {
            out.open('{').put("id", one.id).put("member", one.member.index).put("abandoned", one.abandoned).close('}');
        }
        out.close(']');
    }

    // --- arguments -------------------------------------------------------------------------------------------

    private Member member(Map<String, Object> command) {
        long index = number(command, "member", -1);
        refuseUnless(index >= 0 && index < members.size(), "no member " + index + " for " + command.get("do"));
        return members.get((int) index);
    }

    private static long number(Map<String, Object> command, String name, long otherwise) {
        Object value = command.get(name);
        return value == null ? otherwise : (Long) value;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, List<String>> racks(Object map) {
        return map == null ? Map.of() : (Map<String, List<String>>) map;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> settings(Object map) {
        return (Map<String, Object>) map;
    }

    @SuppressWarnings("unchecked")
    private static Collection<String> strings(Object list) {
        return (Collection<String>) list;
    }

    private static void refuseUnless(boolean can, String why) {
        if (!can) {
            throw new Refused(why);
        }
    }
}
