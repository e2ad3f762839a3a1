package rebalance.cell;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;

/** What differs between releases of Kafka only by where it is or by what more it takes, found by reflection. */
public final class Shapes {
    private static final Map<Class<?>, Made> CONSTRUCTORS = new HashMap<>();

    private Shapes() {
    }

    private static final class Made {
        Constructor<?> constructor;
        int[] from; // which of the given is each parameter
    }

    /** Kafka has something no more where we know it to be. */
    public static final class Missing extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Missing(String what) {
            super("this release of Kafka has no " + what + " where this release of rebalance-verifier knows it");
        }
    }

    /** The first class of these names that there is, the oldest first. */
    public static Class<?> type(ClassLoader loader, String... names) {
        for (String name : names) {
            try {
                return Class.forName(name, true, loader);
            } catch (ClassNotFoundException elsewhere) {
                // perhaps by the next name
            }
        }
        throw new Missing(String.join(" or ", names));
    }

    /**
     * An instance by the longest constructor whose parameters are all among {@code given}: each takes the first of
     * its type that no earlier one took. What is given always has the same types in the same order.
     */
    @SuppressWarnings("unchecked")
    public static <T> T make(Class<T> type, Object... given) {
        Made made = CONSTRUCTORS.computeIfAbsent(type, one -> choose(one, given));
        Object[] arguments = new Object[made.from.length];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = given[made.from[i]];
        }
        try {
            return (T) made.constructor.newInstance(arguments);
        } catch (InvocationTargetException error) {
            throw Shapes.<RuntimeException>same(error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Made choose(Class<?> type, Object[] given) {
        Constructor<?>[] all = type.getDeclaredConstructors();
        Arrays.sort(all, Comparator.comparingInt((Constructor<?> one) -> -one.getParameterCount())
            .thenComparing(Object::toString));
        for (Constructor<?> one : all) {
            int[] from = fill(one.getParameterTypes(), given);
            if (from != null && !one.isSynthetic()) {
                one.setAccessible(true);
                Made made = new Made();
                made.constructor = one;
                made.from = from;
                return made;
            }
        }
        throw new Missing("constructor of " + type.getName() + " for what there is: " + Arrays.toString(all));
    }

    private static int[] fill(Class<?>[] types, Object[] given) {
        int[] from = new int[types.length];
        boolean[] used = new boolean[given.length];
        for (int i = 0; i < types.length; i++) {
            int found = 0;
            while (found < given.length && (used[found] || !fits(types[i], given[found]))) {
                found++;
            }
            if (found == given.length) {
                return null;
            }
            used[found] = true;
            from[i] = found;
        }
        return from;
    }

    private static boolean fits(Class<?> type, Object value) {
        if (type.isPrimitive()) {
            return type == int.class && value instanceof Integer || type == long.class && value instanceof Long
                || type == boolean.class && value instanceof Boolean
                || type == short.class && value instanceof Short;
        }
        return type != Object.class && type.isInstance(value);
    }

    /** The method of one of these names that takes so many parameters or fewer, the first that there is. */
    public static Method method(Class<?> type, String... names) {
        for (String name : names) {
            for (Class<?> one = type; one != null; one = one.getSuperclass()) {
                Method found = null;
                for (Method method : one.getDeclaredMethods()) {
                    boolean more = found == null || method.getParameterCount() > found.getParameterCount();
                    if (method.getName().equals(name) && !method.isSynthetic() && more) {
                        found = method;
                    }
                }
                if (found != null) {
                    found.setAccessible(true);
                    return found;
                }
            }
        }
        throw new Missing(type.getName() + "." + String.join(" or ", names));
    }

    /** As {@link #method}, with parameters of exactly these types; null where there is none. */
    public static Method exact(Class<?> type, String name, Class<?>... parameters) {
        for (Class<?> one = type; one != null; one = one.getSuperclass()) {
            try {
                Method found = one.getDeclaredMethod(name, parameters);
                found.setAccessible(true);
                return found;
            } catch (NoSuchMethodException elsewhere) {
                // perhaps above
            }
        }
        return null;
    }

    /** The method without parameters, of the class or one that it extends. */
    public static Method plain(Class<?> type, String name) {
        Method found = exact(type, name);
        if (found == null) {
            throw new Missing(type.getName() + "." + name + "()");
        }
        return found;
    }

    public static Field field(Class<?> type, String... names) {
        for (Class<?> one = type; one != null; one = one.getSuperclass()) {
            for (String name : names) {
                try {
                    Field found = one.getDeclaredField(name);
                    found.setAccessible(true);
                    return found;
                } catch (NoSuchFieldException elsewhere) {
                    // perhaps above
                }
            }
        }
        throw new Missing("field " + type.getName() + "." + String.join(" or ", names));
    }

    public static Object get(Field field, Object of) {
        try {
            return field.get(of);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Throws what the method threw, and not wrapped. */
    public static Object call(Method method, Object of, Object... arguments) {
        try {
            return method.invoke(of, arguments);
        } catch (InvocationTargetException error) {
            throw Shapes.<RuntimeException>same(error.getCause());
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E same(Throwable error) throws E {
        throw (E) error;
    }
}
