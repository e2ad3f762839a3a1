package com.acme;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.DynamicTest;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/**
 * The clauses of an assignor as tests of JUnit 5: copy this file beside yours.
 *
 * <p>It runs {@code rebalance check} (on the path, or what the system property {@code rebalance} names) on a
 * class of this class path, and makes a test of each case of its JUnit report that was asked: there is none of
 * what the assignor does not promise. What it breaks fails with the counterexample.
 */
final class Rebalance {
    private Rebalance() {}

    /** The tests of {@code assignor}; {@code options} are those of {@code rebalance check}. */
    static Stream<DynamicTest> clauses(Class<?> assignor, String... options) throws Exception {
        Path reports = Files.createTempDirectory("rebalance");
        List<String> command = new ArrayList<>(List.of(
            System.getProperty("rebalance", "rebalance"), "check", "java:" + assignor.getName(),
            "--classpath", classPath(), "--report", "text,junit", "--report-dir", reports.toString()));
        command.addAll(List.of(options));
        Path log = reports.resolve("log.txt");
        int code = new ProcessBuilder(command)
            .redirectErrorStream(true).redirectOutput(log.toFile()).start().waitFor();
        String printed = Files.readString(log, StandardCharsets.UTF_8);
        File report = reports.resolve("junit.xml").toFile();
        assertTrue(report.exists(), "rebalance ended with " + code + ":\n" + printed);

        List<DynamicTest> tests = new ArrayList<>();
        NodeList cases = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(report)
            .getElementsByTagName("testcase");
        for (int index = 0; index < cases.getLength(); index++) {
            Element one = (Element) cases.item(index);
            if (!skipped(one).startsWith("unsupported")) { // Surefire lists what is skipped as a failure
                tests.add(dynamicTest(one.getAttribute("name"), () -> settle(one)));
            }
        }
        // What belongs to no clause: an inconclusive search, a list of known failures that is out of date.
        tests.add(dynamicTest("search", () -> assertTrue(code <= 1, "exit " + code + ":\n" + printed)));
        return tests.stream();
    }

    private static void settle(Element one) {
        for (String kind : List.of("failure", "error")) {
            NodeList found = one.getElementsByTagName(kind);
            if (found.getLength() > 0) {
                Element problem = (Element) found.item(0);
                fail(problem.getAttribute("message") + "\n" + problem.getTextContent());
            }
        }
        assumeTrue(skipped(one).isEmpty(), () -> skipped(one)); // known, or not played
    }

    private static String skipped(Element one) {
        NodeList found = one.getElementsByTagName("skipped");
        return found.getLength() == 0 ? "" : ((Element) found.item(0)).getAttribute("message");
    }

    /** Of this process, without what is not there: build tools list directories that may not exist. */
    private static String classPath() {
        List<String> found = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (new File(entry).exists()) {
                found.add(entry);
            }
        }
        return String.join(File.pathSeparator, found);
    }
}
