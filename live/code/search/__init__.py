"""Search on Kafka's own code: the clauses of a group judged on the simulation, without the model in
between."""
