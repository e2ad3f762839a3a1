package rebalance.processes;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** As much JSON as our lines need: objects, lists, strings, whole numbers, true, false, null. */
public final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    @SuppressWarnings("unchecked")
    public static Map<String, Object> object(String line) {
        return (Map<String, Object>) new Json(line).value();
    }

    @SuppressWarnings("unchecked")
    public static List<String> strings(Object list) {
        return (List<String>) list;
    }

    private char next() {
        while (text.charAt(at) <= ' ') {
            at++;
        }
        return text.charAt(at);
    }

    private Object value() {
        switch (next()) {
            case '{':
                Map<String, Object> fields = new LinkedHashMap<>();
                for (at++; next() != '}'; skip(',')) {
                    String name = (String) value();
                    skip(':');
                    fields.put(name, value());
                }
                at++;
                return fields;
            case '[':
                List<Object> list = new ArrayList<>();
                for (at++; next() != ']'; skip(',')) {
                    list.add(value());
                }
                at++;
                return list;
            case '"':
                return string();
            default:
                int start = at;
                while (at < text.length() && ",]} \t\n".indexOf(text.charAt(at)) < 0) {
                    at++;
                }
                String word = text.substring(start, at);
                return word.equals("true") ? Boolean.TRUE : word.equals("false") ? Boolean.FALSE
                    : word.equals("null") ? null : (Object) Long.valueOf(word);
        }
    }

    private void skip(char one) {
        if (next() == one) {
            at++;
        }
    }

    private String string() {
        int end = text.indexOf('"', at + 1);
        String whole = text.substring(at + 1, end);
        if (whole.indexOf('\\') < 0) { // most are plain
            at = end + 1;
            return whole;
        }
        StringBuilder made = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char one = text.charAt(at);
            if (one == '\\') {
                char code = text.charAt(++at);
                int plain = "nrtbf".indexOf(code);
                if (code == 'u') {
                    one = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                    at += 4;
                } else {
                    one = plain < 0 ? code : "\n\r\t\b\f".charAt(plain);
                }
            }
            made.append(one);
        }
        at++;
        return made.toString();
    }

    public static String write(Object value) {
        if (value instanceof Map) {
            List<String> parts = new ArrayList<>();
            ((Map<?, ?>) value).forEach((name, one) -> parts.add(write(name) + ": " + write(one)));
            return "{" + String.join(", ", parts) + "}";
        }
        if (value instanceof Iterable) {
            List<String> parts = new ArrayList<>();
            ((Iterable<?>) value).forEach(one -> parts.add(write(one)));
            return "[" + String.join(", ", parts) + "]";
        }
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        StringBuilder made = new StringBuilder("\"");
        for (char one : value.toString().toCharArray()) {
            if (one == '"' || one == '\\') {
                made.append('\\').append(one);
            } else if (one < ' ' || one > '~') {
                made.append(String.format("\\u%04x", (int) one));
            } else {
                made.append(one);
            }
        }
        return made.append('"').toString();
    }
}
