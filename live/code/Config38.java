package org.apache.kafka.coordinator.group;

import java.lang.reflect.Constructor;
import java.util.List;
import java.util.Map;
import rebalance.cell.Shapes;

/** GroupCoordinatorConfig of 3.8, which takes its values one by one. */
final class Config38 {
    private Config38() {
    }

    static GroupCoordinatorConfig of(Map<String, Object> given) {
        Constructor<?> constructor = GroupCoordinatorConfig.class.getDeclaredConstructors()[0];
        Class<?>[] types = constructor.getParameterTypes();
        Object policy = Shapes.get(Shapes.field(types[16], "DISABLED"), null);
        Object compression = Shapes.get(Shapes.field(types[17], "NONE"), null);
        try {
            return (GroupCoordinatorConfig) constructor.newInstance(
                1, 0, 45_000, 5_000, Integer.MAX_VALUE, assignors(), 104_857_600, 4096,
                number(given, "group.max.size", Integer.MAX_VALUE),
                number(given, "group.initial.rebalance.delay.ms", 3000),
                300_000,
                number(given, "group.min.session.timeout.ms", 6000),
                number(given, "group.max.session.timeout.ms", 1_800_000),
                600_000L, 604_800_000L, 5000, policy, compression);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static int number(Map<String, Object> given, String name, int otherwise) {
        Object value = given.get(name);
        return value == null ? otherwise : Integer.parseInt(value.toString());
    }

    private static List<?> assignors() {
        try {
            Class<?> type = Shapes.type(Config38.class.getClassLoader(),
                "org.apache.kafka.coordinator.group.assignor.RangeAssignor");
            return List.of(type.getDeclaredConstructor().newInstance());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
