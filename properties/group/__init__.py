"""What a consumer group has to keep: the clauses of the protocol, and Hypothesis playing the group."""
