package com.acme;

import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

class InTurnTest {
    @TestFactory
    Stream<DynamicTest> keepsTheContract() throws Exception {
        return Rebalance.clauses(InTurn.class, "--profile", "smoke");
    }
}
