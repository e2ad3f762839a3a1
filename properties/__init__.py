"""What must hold: the clause table, its oracles, the scenarios it is asked on."""
