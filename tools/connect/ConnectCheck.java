package org.apache.kafka.connect.runtime.distributed;

import java.lang.reflect.Constructor;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor.ClusterAssignment;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Histories of a Connect cluster (KIP-415) on the IncrementalCooperativeAssignor of a release: {@code ConnectCheck
 * HISTORIES}. It writes a line "histories N rounds M", and for each clause that broke its name, how often, and the
 * log of the smallest history, parts by tabs and lines of a log by a bar.
 */
public final class ConnectCheck {
    private static final int MOST_ROUNDS = 40;
    private static final long DELAY = 60_000;

    private static final Map<String, Integer> COUNTS = new TreeMap<>();
    private static final Map<String, List<String>> SMALLEST = new TreeMap<>();
    private static long now;
    private static int rounds;

    private final Random draw;
    private final int maxDelay;
    private final Map<String, Integer> connectors = new TreeMap<>(); // and their numbers of tasks
    private final Map<String, Set<Object>> workers = new LinkedHashMap<>(); // what runs there
    private final Map<String, Set<Object>> away = new LinkedHashMap<>();
    private final List<String> log = new ArrayList<>();
    private final Set<String> broken = new TreeSet<>();
    private IncrementalCooperativeAssignor assignor; // of the leader, which keeps its state in fields
    private String leader = "w0";
    private int number;
    private int generation;
    private int completed = -1;

    public static void main(String[] arguments) throws Exception {
        int histories = Integer.parseInt(arguments[0]);
        for (long seed = 1; seed <= histories; seed++) {
            new ConnectCheck(new Random(seed)).history();
        }
        System.out.println("histories\t" + histories + "\trounds\t" + rounds);
        COUNTS.forEach((clause, count) ->
            System.out.println(clause + "\t" + count + "\t" + String.join("|", SMALLEST.get(clause))));
    }

    private ConnectCheck(Random draw) throws ReflectiveOperationException {
        this.draw = draw;
        now = 1_000_000;
        maxDelay = draw.nextInt(3) == 0 ? 0 : (int) DELAY;
        for (int count = 1 + draw.nextInt(3), at = 0; at < count; at++) {
            connectors.put("c" + at, draw.nextInt(5));
        }
        for (int count = 1 + draw.nextInt(3); count > 0; count--) {
            workers.put("w" + number++, new LinkedHashSet<>());
        }
        assignor = assignor();
        log.add("scheduled.rebalance.max.delay.ms=" + maxDelay + "; connectors and tasks " + connectors
            + "; workers " + workers.keySet());
    }

    /** Its constructor takes a LogContext, whose package is not always the same. */
    private IncrementalCooperativeAssignor assignor() throws ReflectiveOperationException {
        Time time = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (self, method, given) -> method.getName().equals("milliseconds") ? (Object) now
                : method.getName().equals("nanoseconds") ? (Object) (now * 1_000_000) : null);
        Constructor<?> made = IncrementalCooperativeAssignor.class.getConstructors()[0];
        return (IncrementalCooperativeAssignor)
            made.newInstance(made.getParameterTypes()[0].getConstructor().newInstance(), time, maxDelay);
    }

    /** The shortest constructor, whatever else it takes: numbers of tasks, then a configuration for each connector. */
    private ClusterConfigState configs() throws ReflectiveOperationException {
        Constructor<?> shortest = ClusterConfigState.class.getConstructors()[0];
        for (Constructor<?> one : ClusterConfigState.class.getConstructors()) {
            shortest = one.getParameterCount() < shortest.getParameterCount() ? one : shortest;
        }
        Map<String, Map<String, String>> plain = new HashMap<>();
        connectors.keySet().forEach(name -> plain.put(name, new HashMap<>()));
        List<Object> given = new ArrayList<>();
        int maps = 0;
        for (Class<?> type : shortest.getParameterTypes()) {
            if (type == long.class) {
                given.add(1L);
            } else if (type == Map.class) {
                given.add(maps == 0 ? connectors : maps == 1 ? plain : new HashMap<>());
                maps++;
            } else {
                given.add(type == Set.class ? new HashSet<>() : null);
            }
        }
        return (ClusterConfigState) shortest.newInstance(given.toArray());
    }

    private void broke(String clause, String why) {
        if (broken.add(clause)) { // once for each history
            COUNTS.merge(clause, 1, Integer::sum);
            List<String> shown = new ArrayList<>(log);
            shown.add(why);
            if (!SMALLEST.containsKey(clause) || size(shown) < size(SMALLEST.get(clause))) {
                SMALLEST.put(clause, shown);
            }
        }
    }

    private static int size(List<String> shown) {
        return shown.size() * 1000 + String.join("", shown).length();
    }

    private void history() throws ReflectiveOperationException {
        for (int events = 2 + draw.nextInt(4), event = 0; event < events; event++) {
            String deaf = event > 0 && draw.nextInt(6) == 0 ? one(workers) : null;
            if (!settles(deaf)) {
                return;
            }
            happens();
        }
    }

    private <T> String one(Map<String, T> known) {
        return new ArrayList<>(known.keySet()).get(draw.nextInt(known.size()));
    }

    /** Rebalance until nothing is revoked or scheduled, and once more, in which nothing may happen. */
    private boolean settles(String deaf) throws ReflectiveOperationException {
        boolean settled = false;
        for (int round = 0; round < MOST_ROUNDS; round++) {
            String lost = round == 0 ? deaf : null;
            boolean revoked = rebalance(lost);
            if (broken.contains("answer")) {
                return false;
            }
            if (lost != null || revoked) {
                continue;
            }
            if (assignor.delay > 0) {
                now += assignor.delay;
                continue;
            }
            if (settled) {
                return true;
            }
            settled = true;
            complete();
            now += 1000;
        }
        broke("settles", "not settled after " + MOST_ROUNDS + " rebalances");
        return false;
    }

    /** One rebalance, of which the worker {@code lost} does not hear; whether anything is revoked. */
    private boolean rebalance(String lost) throws ReflectiveOperationException {
        rounds++;
        generation++;
        Set<Object> running = new HashSet<>();
        Map<String, ConnectorsAndTasks> members = new HashMap<>();
        workers.forEach((id, runs) -> {
            running.addAll(runs);
            members.put(id, new ConnectorsAndTasks.Builder().with(names(runs), tasks(runs)).build());
        });
        ClusterAssignment answer;
        try {
            answer = assignor.performTaskAssignment(configs(), completed, generation, members);
        } catch (RuntimeException error) {
            broke("answer", String.valueOf(error));
            return false;
        }
        if (assignor.delay < 0 || assignor.delay > maxDelay) {
            broke("delay", "delay " + assignor.delay + " of " + maxDelay);
        }
        Map<String, Set<Object>> revoked = new LinkedHashMap<>();
        Map<String, Set<Object>> given = new LinkedHashMap<>();
        workers.keySet().forEach(id -> {
            revoked.put(id, new LinkedHashSet<>(answer.newlyRevokedConnectors(id)));
            revoked.get(id).addAll(answer.newlyRevokedTasks(id));
            given.put(id, new LinkedHashSet<>(answer.newlyAssignedConnectors(id)));
            given.get(id).addAll(answer.newlyAssignedTasks(id));
        });
        log.add("rebalance, delay " + assignor.delay + ": " + shown(revoked, given) + (lost == null ? "" : "; " + lost
            + " does not hear of it"));
        judge(running, revoked, given);
        workers.forEach((id, runs) -> {
            if (!id.equals(lost)) {
                runs.removeAll(revoked.get(id));
                runs.addAll(given.get(id));
            }
        });
        completed = leader.equals(lost) ? completed : generation;
        return revoked.values().stream().anyMatch(some -> !some.isEmpty());
    }

    private String shown(Map<String, Set<Object>> revoked, Map<String, Set<Object>> given) {
        List<String> found = new ArrayList<>();
        workers.forEach((id, runs) -> found.add(id + " runs " + runs + (revoked.get(id).isEmpty() ? "" : " -"
            + revoked.get(id)) + (given.get(id).isEmpty() ? "" : " +" + given.get(id))));
        return String.join("  ", found);
    }

    private void judge(Set<Object> running, Map<String, Set<Object>> revoked, Map<String, Set<Object>> given) {
        Map<Object, String> taken = new HashMap<>();
        workers.forEach((id, runs) -> {
            if (!runs.containsAll(revoked.get(id))) {
                broke("revoked from its owner", id + " is to give up what it has not: " + revoked.get(id));
            }
            for (Object one : given.get(id)) {
                if (running.contains(one)) {
                    broke("revoked before given", one + " is given to " + id + " while it runs");
                }
                if (!configured(one)) {
                    broke("configured", one + " is given to " + id + " and is not configured");
                }
                String other = taken.put(one, id);
                if (other != null) {
                    broke("given once", one + " is given to " + other + " and to " + id);
                }
            }
        });
    }

    private boolean configured(Object one) {
        return one instanceof String ? connectors.containsKey(one)
            : ((ConnectorTaskId) one).task() < connectors.getOrDefault(((ConnectorTaskId) one).connector(), 0);
    }

    private static Set<String> names(Set<Object> runs) {
        Set<String> found = new LinkedHashSet<>();
        runs.stream().filter(one -> one instanceof String).forEach(one -> found.add((String) one));
        return found;
    }

    private static Set<ConnectorTaskId> tasks(Set<Object> runs) {
        Set<ConnectorTaskId> found = new LinkedHashSet<>();
        runs.stream().filter(one -> one instanceof ConnectorTaskId).forEach(one -> found.add((ConnectorTaskId) one));
        return found;
    }

    /** What must hold where nothing is left to do. */
    private void complete() {
        Set<Object> wanted = new LinkedHashSet<>(connectors.keySet());
        connectors.forEach((name, count) -> {
            for (int task = 0; task < count; task++) {
                wanted.add(new ConnectorTaskId(name, task));
            }
        });
        Map<Object, String> on = new LinkedHashMap<>();
        workers.forEach((id, runs) -> runs.forEach(one -> {
            String other = on.put(one, id);
            if (other != null) {
                broke("settled: runs once", one + " runs on " + other + " and " + id + ", and nothing is scheduled");
            }
            if (!wanted.contains(one)) {
                broke("settled: nothing deleted runs", one + " runs on " + id + ", and nothing is scheduled");
            }
        }));
        for (Object one : wanted) {
            if (!on.containsKey(one)) {
                broke("settled: everything runs", one + " runs nowhere, and nothing is scheduled");
            }
        }
        even("connectors", workers.values().stream().mapToInt(runs -> names(runs).size()).toArray());
        even("tasks", workers.values().stream().mapToInt(runs -> tasks(runs).size()).toArray());
    }

    private void even(String what, int[] loads) {
        int least = java.util.Arrays.stream(loads).min().orElse(0);
        int most = java.util.Arrays.stream(loads).max().orElse(0);
        if (most - least > 1) {
            broke("settled: even", "one worker has " + most + " " + what + ", another " + least);
        }
    }

    private void happens() throws ReflectiveOperationException {
        switch (draw.nextInt(7)) {
            case 0:
                joins(new LinkedHashSet<>(), "joins");
                break;
            case 1: case 2:
                leaves();
                break;
            case 3:
                connectors.put("c" + draw.nextInt(4), draw.nextInt(5));
                log.add("connectors and tasks " + connectors);
                break;
            case 4:
                if (connectors.size() > 1) {
                    connectors.remove(one(connectors));
                    log.add("connectors and tasks " + connectors);
                }
                break;
            case 5:
                if (!away.isEmpty()) { // KAFKA-9841
                    String id = away.keySet().iterator().next();
                    joins(away.remove(id), "is " + id + ", back with what it ran");
                }
                break;
            default:
                log.add("a rebalance for no reason");
        }
    }

    private void joins(Set<Object> runs, String how) {
        workers.put("w" + number, runs);
        log.add("w" + number++ + " " + how);
    }

    private void leaves() throws ReflectiveOperationException {
        if (workers.size() < 2) {
            return;
        }
        String id = one(workers);
        away.put(id, workers.remove(id));
        log.add(id + (id.equals(leader) ? ", the leader, leaves" : " leaves"));
        if (draw.nextInt(3) == 0) {
            joins(new LinkedHashSet<>(), "joins at once");
        }
        if (id.equals(leader)) {
            leader = workers.keySet().iterator().next();
            assignor = assignor();
        }
    }
}
