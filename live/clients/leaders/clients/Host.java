import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/** Runs the clients of a program side by side, as {@code hosted.py} wants it. */
final class Host {
    /** One client: runs until it ends, tells how to end it before that, and returns its exit status. */
    interface Client {
        int run(String[] arguments, Consumer<Runnable> ending);
    }

    private static final PrintStream ANSWERS = System.out;

    /** What a thread writes to stderr, and those that it starts, goes here. */
    private static final InheritableThreadLocal<OutputStream> OUTPUT = new InheritableThreadLocal<>();

    private Host() {}

    /** Begins what is asked for on stdin, until its end. */
    static void serve(Client client) throws IOException {
        System.setErr(new PrintStream(new OutputStream() {
            @Override
            public void write(int one) throws IOException {
                OutputStream own = OUTPUT.get();
                if (own != null) {
                    own.write(one);
                }
            }
        }, true));
        Map<Integer, Runnable> endings = new ConcurrentHashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int count = 0;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = Arrays.stream(line.split(" ", -1))
                .map(word -> URLDecoder.decode(word, StandardCharsets.UTF_8)).toArray(String[]::new);
            if (words[0].equals("start")) {
                int number = ++count;
                answer("+" + number);
                Thread thread = new Thread(() -> run(client, number, words, endings), "client-" + number);
                thread.setDaemon(true);
                thread.start();
            } else {
                Runnable ending = endings.remove(Integer.valueOf(words[1]));
                if (ending != null) {
                    ending.run();
                }
            }
        }
    }

    private static void run(Client client, int number, String[] words, Map<Integer, Runnable> endings) {
        int code = 1;
        try (OutputStream output = new FileOutputStream(words[1], true)) {
            OUTPUT.set(output);
            String[] arguments = Arrays.copyOfRange(words, 2, words.length);
            code = client.run(arguments, ending -> endings.put(number, ending));
        } catch (IOException error) {
            error.printStackTrace(ANSWERS);
        }
        endings.remove(number);
        answer("-" + number + " " + code);
    }

    private static synchronized void answer(String line) {
        ANSWERS.println(line);
        ANSWERS.flush();
    }
}
