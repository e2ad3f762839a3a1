import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.coordinator.group.api.streams.assignor.AssignmentConfigs;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignmentMetadata;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignmentState;
import org.apache.kafka.coordinator.group.api.streams.assignor.TaskAssignor;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;

/** A task assignor of a broker by its public interface (KIP-1357, since 4.4). */
final class GroupTasks44 extends GroupTasks {
    private final TaskAssignor assignor;

    GroupTasks44(Supplier<Object> made, List<String> promises, String protocol) {
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
        GroupAssignment answer = assignor.assign(new Spec(group), new Topology(group));
        return collected(answer, answer == null ? null : answer.members(), MemberAssignment::activeTasks,
            MemberAssignment::standbyTasks);
    }

    private static final class Spec implements GroupSpec {
        private final Group group;

        Spec(Group group) {
            this.group = group;
        }

        @Override
        public Collection<String> memberIds() {
            return Collections.unmodifiableSet(group.members.keySet());
        }

        @Override
        public MemberAssignmentMetadata memberMetadata(String memberId) {
            return new Described(member(memberId));
        }

        @Override
        public MemberAssignmentState memberAssignmentState(String memberId) {
            return new Described(member(memberId));
        }

        private Member member(String id) {
            Member found = group.members.get(id);
            if (found == null) {
                throw new IllegalArgumentException("Member Id " + id + " not found.");
            }
            return found;
        }

        @Override
        public AssignmentConfigs configs() {
            return new AssignmentConfigs() {
                @Override
                public int numStandbyReplicas() {
                    return group.standbys;
                }

                @Override
                public List<String> rackAwareAssignmentTags() {
                    return Collections.unmodifiableList(group.tags);
                }
            };
        }
    }

    private static final class Described implements MemberAssignmentMetadata, MemberAssignmentState {
        private final Member member;

        Described(Member member) {
            this.member = member;
        }

        @Override
        public Optional<String> instanceId() {
            return Optional.empty();
        }

        @Override
        public Optional<String> rackId() {
            return Optional.ofNullable(member.rack);
        }

        @Override
        public String processId() {
            return member.process;
        }

        @Override
        public Map<String, String> clientTags() {
            return Collections.unmodifiableMap(member.tags);
        }

        @Override
        public Map<String, Set<Integer>> activeTasks() {
            return Collections.unmodifiableMap(member.active);
        }

        @Override
        public Map<String, Set<Integer>> standbyTasks() {
            return Collections.unmodifiableMap(member.standby);
        }

        @Override
        public Map<String, Set<Integer>> warmupTasks() {
            return Map.of();
        }

        @Override
        public Map<String, Map<Integer, Long>> taskOffsets() {
            return Collections.unmodifiableMap(member.offsets);
        }

        @Override
        public Map<String, Map<Integer, Long>> taskEndOffsets() {
            return Collections.unmodifiableMap(member.ends);
        }
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
