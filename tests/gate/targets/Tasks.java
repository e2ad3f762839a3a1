package acme;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.streams.errors.TaskAssignmentException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils.RackAwareOptimizationParams;
import org.apache.kafka.streams.processor.assignment.TaskAssignor;

/** A task assignor of a user: actives in turn, standbys by Kafka's own helper; {@code mode} says what it does wrong. */
public class Tasks implements TaskAssignor {
    private String mode = "";
    private int calls;

    @Override
    public void configure(Map<String, ?> configs) {
        mode = configs.containsKey("mode") ? (String) configs.get("mode") : "";
    }

    @Override
    public TaskAssignment assign(ApplicationState application) {
        if (mode.equals("field") && calls++ > 0) {
            throw new IllegalStateException("an instance is asked twice");
        }
        if (mode.equals("lags") && application.kafkaStreamsStates(true).values().stream()
                .anyMatch(state -> state.statefulTasksToLagSums().containsValue(-3L))) {
            throw new TaskAssignmentException("no end offsets");
        }
        if (mode.equals("names") && application.allTasks().values().stream()
                .flatMap(task -> task.topicPartitions().stream())
                .noneMatch(partition -> partition.topicPartition().topic().equals("orders"))) {
            throw new IllegalStateException("nobody reads orders");
        }
        Map<ProcessId, KafkaStreamsAssignment> given = new TreeMap<>();
        List<ProcessId> processes = new ArrayList<>(new TreeSet<>(application.kafkaStreamsStates(false).keySet()));
        processes.forEach(id -> given.put(id, KafkaStreamsAssignment.of(id, new HashSet<>())));
        int number = 0;
        for (TaskId task : new TreeSet<>(application.allTasks().keySet())) {
            ProcessId id = processes.get(number++ % processes.size());
            if (!(mode.equals("forgets") && number == 3)) {
                given.get(id).assignTask(new AssignedTask(task, AssignedTask.Type.ACTIVE));
            }
        }
        TaskAssignmentUtils.defaultStandbyTaskAssignment(application, given);
        if (mode.equals("racks")) {
            TaskAssignmentUtils.optimizeRackAwareStandbyTasks(RackAwareOptimizationParams.of(application), given);
        }
        return new TaskAssignment(mode.equals("twice") ? apart(given.values()) : given.values());
    }

    /** Lists a process once for what runs there, and once for its standbys. */
    private static List<KafkaStreamsAssignment> apart(Collection<KafkaStreamsAssignment> given) {
        List<KafkaStreamsAssignment> found = new ArrayList<>();
        for (KafkaStreamsAssignment one : given) {
            Set<AssignedTask> actives = new HashSet<>();
            Set<AssignedTask> standbys = new HashSet<>();
            for (AssignedTask task : one.tasks().values()) {
                (task.type() == AssignedTask.Type.ACTIVE ? actives : standbys).add(task);
            }
            found.add(KafkaStreamsAssignment.of(one.processId(), actives));
            if (!standbys.isEmpty()) {
                found.add(KafkaStreamsAssignment.of(one.processId(), standbys));
            }
        }
        return Collections.unmodifiableList(found);
    }
}
