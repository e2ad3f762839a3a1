"""Every known rebalance bug: the catalogue, the switches that make it again, the releases that had it."""
