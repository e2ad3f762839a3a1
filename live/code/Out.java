package rebalance.cell;

/** A line of JSON, written from left to right. */
public final class Out {
    private final StringBuilder text = new StringBuilder(4096);
    private boolean first = true;

    public void clear() {
        text.setLength(0);
        first = true;
    }

    public int length() {
        return text.length();
    }

    /** Back to an earlier length, between two values of a list that began at {@code start}. */
    public void cut(int length) {
        text.setLength(length);
        char last = length == 0 ? '[' : text.charAt(length - 1);
        first = last == '[' || last == '{' || last == ':';
    }

    public CharSequence text() {
        return text;
    }

    private void comma() {
        if (!first) {
            text.append(',');
        }
        first = false;
    }

    public Out name(String name) {
        comma();
        text.append('"').append(name).append("\":");
        first = true;
        return this;
    }

    public Out open(char bracket) {
        comma();
        text.append(bracket);
        first = true;
        return this;
    }

    public Out close(char bracket) {
        text.append(bracket);
        first = false;
        return this;
    }

    public Out value(long number) {
        comma();
        text.append(number);
        return this;
    }

    public Out value(boolean truth) {
        comma();
        text.append(truth);
        return this;
    }

    public Out value(String string) {
        comma();
        if (string == null) {
            text.append("null");
            return this;
        }
        text.append('"');
        for (int i = 0; i < string.length(); i++) {
            char one = string.charAt(i);
            if (one == '"' || one == '\\') {
                text.append('\\').append(one);
            } else if (one < ' ' || one > '~') {
                text.append(String.format("\\u%04x", (int) one));
            } else {
                text.append(one);
            }
        }
        text.append('"');
        return this;
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
