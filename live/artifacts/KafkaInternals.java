import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;

/**
 * All that our programs take from Kafka beside its public API, by reflection: a release may move or drop it. The
 * names that a class has had stand here, the oldest first; a new one is added here and nowhere else.
 */
final class KafkaInternals {
    private static final String[] PROTOCOL = {"org.apache.kafka.clients.consumer.internals.ConsumerProtocol"};
    private static final String[] ASSIGNOR = {
        "org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor"};
    private static final String[] EXIT = {
        "org.apache.kafka.common.utils.Exit",
        "org.apache.kafka.common.utils.internals.Exit"}; // since 4.4

    private KafkaInternals() {
    }

    /** Kafka has something no more where we know it to be; the text says what to do. */
    static final class Missing extends RuntimeException {
        Missing(String what, Throwable cause) {
            super("kafka-clients " + version() + " has no " + what + ": this release of rebalance-verifier does not"
                + " know where it is now; take a newer one, or an older kafka-clients (to mend: KafkaInternals.java)",
                cause);
        }
    }

    /** The release of kafka-clients, from the resource in which Kafka's build leaves it; "unknown" without. */
    static String version() {
        Properties properties = new Properties();
        try (InputStream in = Subscription.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            if (in != null) {
                properties.load(in);
            }
        } catch (IOException unreadable) {
            // as if there were none
        }
        return properties.getProperty("version", "unknown").trim();
    }

    /** Whether Kafka's own assignors take racks into account: they were rewritten for it in 3.5. */
    static boolean assignorsKnowRacks() {
        return Arrays.stream(type(ASSIGNOR).getDeclaredMethods())
            .anyMatch(method -> method.getName().equals("useRackAwareAssignment"));
    }

    /** The bytes in JoinGroup and SyncGroup, as the consumer reads and writes them. */
    static final class Codec {
        private final MethodHandle readSubscription =
            protocol("deserializeSubscription", Subscription.class, ByteBuffer.class);
        private final MethodHandle readAssignment =
            protocol("deserializeAssignment", Assignment.class, ByteBuffer.class);
        private final MethodHandle writeSubscription =
            protocol("serializeSubscription", ByteBuffer.class, Subscription.class);
        private final MethodHandle writeAssignment =
            protocol("serializeAssignment", ByteBuffer.class, Assignment.class);

        Subscription subscription(ByteBuffer bytes) {
            try {
                return (Subscription) readSubscription.invokeExact(bytes);
            } catch (Throwable error) {
                throw Codec.<RuntimeException>same(error);
            }
        }

        Assignment assignment(ByteBuffer bytes) {
            try {
                return (Assignment) readAssignment.invokeExact(bytes);
            } catch (Throwable error) {
                throw Codec.<RuntimeException>same(error);
            }
        }

        ByteBuffer bytes(Subscription subscription) {
            try {
                return (ByteBuffer) writeSubscription.invokeExact(subscription);
            } catch (Throwable error) {
                throw Codec.<RuntimeException>same(error);
            }
        }

        /** Uses up the user data of the assignment. */
        ByteBuffer bytes(Assignment assignment) {
            try {
                return (ByteBuffer) writeAssignment.invokeExact(assignment);
            } catch (Throwable error) {
                throw Codec.<RuntimeException>same(error);
            }
        }

        private static MethodHandle protocol(String name, Class<?> result, Class<?> parameter) {
            try {
                MethodType form = MethodType.methodType(result, parameter);
                return MethodHandles.publicLookup().findStatic(type(PROTOCOL), name, form);
            } catch (ReflectiveOperationException error) {
                throw new Missing("ConsumerProtocol." + name + "(" + parameter.getSimpleName() + ")", error);
            }
        }

        /** Throws what Kafka's method threw, and not wrapped: who called it must not see a difference. */
        @SuppressWarnings("unchecked")
        private static <E extends Throwable> E same(Throwable error) throws E {
            throw (E) error;
        }
    }

    /** What {@code tool}, a command line tool of Kafka's, would end its process with; 0 if it just returns. */
    static int exitCode(Callable<?> tool) throws Exception {
        Class<?> exit = type(EXIT);
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object stop = Proxy.newProxyInstance(procedure.getClassLoader(), new Class<?>[] {procedure},
            (proxy, method, arguments) -> {
                throw new Stop((Integer) arguments[0]);
            });
        exit.getMethod("setExitProcedure", procedure).invoke(null, stop);
        try {
            tool.call();
            return 0;
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Stop) {
                return ((Stop) error.getCause()).code;
            }
            throw error;
        } finally {
            exit.getMethod("resetExitProcedure").invoke(null);
        }
    }

    /** Instead of the end of the process. */
    private static final class Stop extends RuntimeException {
        final int code;

        Stop(int code) {
            super("exit " + code, null, false, false);
            this.code = code;
        }
    }

    /** The first class of these names that there is. */
    private static Class<?> type(String... names) {
        for (String name : names) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException error) {
                // perhaps by the next name
            }
        }
        throw new Missing(String.join(" or ", names), null);
    }
}
