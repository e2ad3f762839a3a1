"""What an assignor has to keep: its clauses, the scenarios that they are asked on, the oracles."""
