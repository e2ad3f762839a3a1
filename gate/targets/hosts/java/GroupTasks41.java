import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.TaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TaskId;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/** A task assignor of a broker by the interface that 4.1 to 4.3 have inside. */
final class GroupTasks41 extends GroupTasks {
    private final TaskAssignor assignor;

    GroupTasks41(Supplier<Object> made, List<String> promises, String protocol) {
        super(promises, protocol);
        assignor = kept(made, TaskAssignor.class);
    }

    @Override
    Object assignor() {
        return assignor;
    }

    @Override
    String name() {
        return assignor.name();
    }

    @Override
    Map<String, List<Map<String, Set<Integer>>>> ask(Group group) throws Exception {
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        group.members.forEach((id, member) -> members.put(id, new AssignmentMemberSpec(Optional.empty(),
            Optional.ofNullable(member.rack), member.active, member.standby, Map.of(), member.process, member.tags,
            flat(member.offsets), flat(member.ends))));
        Map<String, String> configs = Map.of("num.standby.replicas", String.valueOf(group.standbys));
        GroupAssignment answer = assignor.assign(new GroupSpecImpl(members, configs), new Topology(group));
        return collected(answer, answer == null ? null : answer.members(), MemberAssignment::activeTasks,
            MemberAssignment::standbyTasks);
    }

    private static Map<TaskId, Long> flat(Map<String, Map<Integer, Long>> offsets) {
        Map<TaskId, Long> found = new HashMap<>();
        offsets.forEach((subtopology, own) ->
            own.forEach((partition, offset) -> found.put(new TaskId(subtopology, partition), offset)));
        return found;
    }

    private static final class Topology implements TopologyDescriber {
        private final Group group;

        Topology(Group group) {
            this.group = group;
        }

        @Override
        public List<String> subtopologies() {
            return group.subtopologies();
        }

        @Override
        public int maxNumInputPartitions(String subtopologyId) {
            return group.partitions(subtopologyId);
        }

        @Override
        public boolean isStateful(String subtopologyId) {
            return group.isStateful(subtopologyId);
        }
    }
}
