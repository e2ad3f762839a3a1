package acme;

import org.apache.kafka.coordinator.group.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.streams.assignor.TaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/** A task assignor of 4.1 that returns null. */
public class Nulls41 implements TaskAssignor {
    @Override
    public String name() {
        return "nulls";
    }

    @Override
    public GroupAssignment assign(GroupSpec group, TopologyDescriber topology) {
        return null;
    }
}
