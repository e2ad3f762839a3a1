package com.acme;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.TopicPartition;

/** Deals the partitions of each topic out to its subscribers in turn. */
public class InTurn implements ConsumerPartitionAssignor {
    @Override
    public String name() {
        return "in-turn";
    }

    @Override
    public GroupAssignment assign(Cluster cluster, GroupSubscription subscriptions) {
        Map<String, Subscription> group = new TreeMap<>(subscriptions.groupSubscription());
        Map<String, List<TopicPartition>> dealt = new HashMap<>();
        TreeSet<String> topics = new TreeSet<>();
        group.forEach((member, subscription) -> {
            dealt.put(member, new ArrayList<>());
            topics.addAll(subscription.topics());
        });
        for (String topic : topics) {
            List<String> subscribers = new ArrayList<>();
            group.forEach((member, subscription) -> {
                if (subscription.topics().contains(topic)) {
                    subscribers.add(member);
                }
            });
            Integer partitions = cluster.partitionCountForTopic(topic); // null where the leader knows none
            for (int index = 0; partitions != null && index < partitions; index++) {
                String member = subscribers.get(index % subscribers.size());
                dealt.get(member).add(new TopicPartition(topic, index));
            }
        }
        Map<String, Assignment> assignments = new HashMap<>();
        dealt.forEach((member, partitions) -> assignments.put(member, new Assignment(partitions)));
        return new GroupAssignment(assignments);
    }
}
