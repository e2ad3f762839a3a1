package org.apache.kafka.coordinator.group;

import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.TopicImage;
import rebalance.cell.Shapes;

/** The topics that there are, as a coordinator is told of them. */
final class Images {
    private static final String KRAFT = "org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadata";
    private static final Method LOADED = Shapes.method(GroupCoordinatorShard.class, "onLoaded");
    private static final Method UPDATED =
        Shapes.method(GroupCoordinatorShard.class, "onMetadataUpdate", "onNewMetadataImage"); // since 4.3, before

    private final Map<Map<String, Integer>, MetadataImage> made = new HashMap<>();
    private MetadataImage known = MetadataImage.EMPTY;
    private long versions;

    /** The id of a topic, by its name; the same in what a broker answers to Metadata. */
    static Uuid id(String topic) {
        return new Uuid(1, topic.hashCode());
    }

    /** The name that a topic has, which one that was made anew shares with the one before: t of t', t''. */
    static String name(String topic) {
        return topic.replace("'", "");
    }

    void loaded(GroupCoordinatorShard shard, Map<String, Integer> topics) {
        known = made.computeIfAbsent(new LinkedHashMap<>(topics), one -> image(one, 0));
        Shapes.call(LOADED, shard, fitting(LOADED.getParameterTypes()[0], known));
    }

    /** The topics have changed while the coordinator runs. */
    void updated(GroupCoordinatorShard shard, Map<String, Integer> topics) {
        MetadataDelta delta = delta(known, topics);
        known = image(topics, ++versions); // by which it knows topics that its patterns have not been matched with
        Object[] arguments = new Object[2];
        for (int i = 0; i < arguments.length; i++) {
            Class<?> type = UPDATED.getParameterTypes()[i];
            arguments[i] = fitting(type, type.getSimpleName().endsWith("Delta") ? delta : known);
        }
        Shapes.call(UPDATED, shard, arguments);
    }

    private static MetadataImage image(Map<String, Integer> topics, long version) {
        return delta(MetadataImage.EMPTY, topics).apply(
            Shapes.make(MetadataProvenance.class, version, 0, 0L, true));
    }

    private static MetadataDelta delta(MetadataImage before, Map<String, Integer> topics) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(before).build();
        before.topics().topicsById().keySet().stream()
            .filter(known -> topics.keySet().stream().noneMatch(name -> id(name).equals(known)))
            .forEach(gone -> delta.replay(new RemoveTopicRecord().setTopicId(gone)));
        topics.forEach((name, count) -> {
            TopicImage known = before.topics().getTopic(id(name));
            int there = known == null ? 0 : known.partitions().size();
            if (known == null) {
                delta.replay(new TopicRecord().setName(name(name)).setTopicId(id(name)));
            }
            for (int i = there; i < count; i++) {
                delta.replay(new PartitionRecord().setTopicId(id(name)).setPartitionId(i).setLeader(0)
                    .setReplicas(java.util.List.of(0)).setIsr(java.util.List.of(0)));
            }
        });
        return delta;
    }

    /** The image or the delta itself, or in what the coordinator takes since 4.2. */
    private static Object fitting(Class<?> type, Object value) {
        return type.isInstance(value) ? value
            : Shapes.make(Shapes.type(Images.class.getClassLoader(),
                KRAFT + (value instanceof MetadataImage ? "Image" : "Delta")), value);
    }
}
