package rebalance.cell;

import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;

/**
 * Random numbers that count, so that the UUIDs in member ids are the same in each run, and rise or fall with the
 * order in which they are drawn. UUID.randomUUID takes them from the first provider of a SecureRandom.
 */
public final class Ids extends SecureRandomSpi {
    private static final long serialVersionUID = 1L;
    private static int next;
    private static int step = 1;

    static void install() {
        Provider provider = new Provider("Cell", "1", "counts") {
            private static final long serialVersionUID = 1L;
        };
        provider.put("SecureRandom.Counter", Ids.class.getName());
        Security.insertProviderAt(provider, 1);
    }

    /** The next UUID begins with this number, and each later one with one that is {@code by} more. */
    static void begin(long first, long by) {
        next = (int) first;
        step = (int) by;
    }

    /** Where it stands: what {@link #begin} is to be given to go on from here. */
    static long[] position() {
        return new long[] {next, step};
    }

    @Override
    protected void engineSetSeed(byte[] seed) {
        // it counts
    }

    @Override
    protected void engineNextBytes(byte[] bytes) {
        java.util.Arrays.fill(bytes, (byte) 0);
        for (int i = 0; i < 4 && i < bytes.length; i++) {
            bytes[i] = (byte) (next >>> (24 - 8 * i));
        }
        next += step;
    }

    @Override
    protected byte[] engineGenerateSeed(int length) {
        return new byte[length];
    }
}
