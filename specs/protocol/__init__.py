"""The protocol in logic, file by file as in ``rebalance.model.protocol``."""
