package acme;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;

/** Everything to the first member, the longest lag first, as consumers and admin clients of its own say. */
public class ByLag implements ConsumerPartitionAssignor, Configurable {
    private Map<String, Object> configs;
    private KafkaConsumer<byte[], byte[]> consumer;

    @Override
    public void configure(Map<String, ?> configs) {
        this.configs = new HashMap<>(configs);
    }

    @Override
    public String name() {
        return "by-lag";
    }

    @Override
    public GroupAssignment assign(Cluster cluster, GroupSubscription subscriptions) {
        if (consumer == null) {
            consumer = new KafkaConsumer<>(configs);
        }
        List<TopicPartition> all = cluster.topics().stream()
            .flatMap(topic -> cluster.partitionsForTopic(topic).stream())
            .map(info -> new TopicPartition(info.topic(), info.partition())).collect(Collectors.toList());
        Map<TopicPartition, Long> first = consumer.beginningOffsets(all);
        Map<TopicPartition, Long> end = consumer.endOffsets(all);
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(new HashSet<>(all));
        try (Admin admin = Admin.create(configs)) {
            String group = (String) configs.get("group.id");
            if (!admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().keySet()
                    .equals(present(committed).keySet())) {
                throw new IllegalStateException("two clients, two answers");
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
        Comparator<TopicPartition> byLag = Comparator.comparing(partition -> {
            OffsetAndMetadata known = committed.get(partition);
            return (known == null ? first.get(partition) : known.offset()) - end.get(partition);
        });
        all.sort(byLag.thenComparing(TopicPartition::toString));
        Map<String, Assignment> assignments = new HashMap<>();
        subscriptions.groupSubscription().keySet().stream().sorted()
            .forEach(member -> assignments.put(member, new Assignment(
                assignments.isEmpty() ? all : new ArrayList<>())));
        return new GroupAssignment(assignments);
    }

    private static Map<TopicPartition, OffsetAndMetadata> present(Map<TopicPartition, OffsetAndMetadata> some) {
        return some.entrySet().stream().filter(entry -> entry.getValue() != null)
            .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
    }
}
