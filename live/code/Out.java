package rebalance.cell;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A line of JSON, written from left to right. */
public final class Out {
    private byte[] text = new byte[1 << 13]; // of ASCII alone
    private int length;
    private boolean first = true;

    public void clear() {
        length = 0;
        first = true;
    }

    public int length() {
        return length;
    }

    /** Back to an earlier length, between two values of a list that began at {@code start}. */
    public void cut(int start) {
        length = start;
        byte last = length == 0 ? (byte) '[' : text[length - 1];
        first = last == '[' || last == '{' || last == ':';
    }

    /** What was written from {@code start} on. */
    public byte[] since(int start) {
        return Arrays.copyOfRange(text, start, length);
    }

    /** Whether {@code other} was written from {@code start} on, and nothing else. */
    public boolean is(byte[] other, int start) {
        return other != null && Arrays.equals(text, start, length, other, 0, other.length);
    }

    /** The line, at once: two writes would wake its reader twice. */
    public void send(OutputStream to) throws IOException {
        one('\n');
        to.write(text, 0, length);
        to.flush();
    }

    private void one(char character) {
        grow(1);
        text[length++] = (byte) character;
    }

    private void all(byte[] more) {
        grow(more.length);
        System.arraycopy(more, 0, text, length, more.length);
        length += more.length;
    }

    private void grow(int by) {
        if (length + by > text.length) {
            text = Arrays.copyOf(text, 2 * (length + by));
        }
    }

    private Out word(String plain) {
        comma();
        all(plain.getBytes(StandardCharsets.UTF_8));
        return this;
    }

    private void comma() {
        if (!first) {
            one(',');
        }
        first = false;
    }

    public Out name(String name) {
        value(name).one(':');
        first = true;
        return this;
    }

    public Out open(char bracket) {
        comma();
        one(bracket);
        first = true;
        return this;
    }

    public Out close(char bracket) {
        one(bracket);
        first = false;
        return this;
    }

    public Out value(long number) {
        return word(Long.toString(number));
    }

    public Out value(boolean truth) {
        return word(truth ? "true" : "false");
    }

    public Out value(String string) {
        if (string == null) {
            return word("null");
        }
        comma();
        byte[] plain = string.getBytes(StandardCharsets.UTF_8);
        one('"');
        if (isPlain(plain)) {
            all(plain);
        } else {
            escaped(string);
        }
        one('"');
        return this;
    }

    private static boolean isPlain(byte[] bytes) {
        for (byte one : bytes) {
            if (one < ' ' || one > '~' || one == '"' || one == '\\') {
                return false;
            }
        }
        return true;
    }

    private void escaped(String string) {
        for (int i = 0; i < string.length(); i++) {
            char one = string.charAt(i);
            if (one == '"' || one == '\\') {
                one('\\');
                one(one);
            } else if (one < ' ' || one > '~') {
                all(String.format("\\u%04x", (int) one).getBytes(StandardCharsets.UTF_8));
            } else {
                one(one);
            }
        }
    }

    public Out put(String name, String value) {
        return name(name).value(value);
    }

    public Out put(String name, long value) {
        return name(name).value(value);
    }

    public Out put(String name, boolean value) {
        return name(name).value(value);
    }

    public Out put(String name, Iterable<?> values) {
        name(name).open('[');
        for (Object one : values) {
            value(one.toString());
        }
        return close(']');
    }
}
