"""The ``rebalance`` command."""
