package rebalance.cell;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** A clock that stands still but for what the caller lets pass. Compiled against each release. */
public abstract class VirtualTime implements Time {
    protected long now = 1_000_000;

    public void elapse(long ms) {
        now += ms;
    }

    @Override
    public long milliseconds() {
        return now;
    }

    @Override
    public long hiResClockMs() {
        return now;
    }

    @Override
    public long nanoseconds() {
        return now * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        now += ms;
    }

    /** Of Time since Kafka 2.4 or later: nobody notifies, there is one thread. */
    public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
        now = Math.max(now, deadline);
    }
}
