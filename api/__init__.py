"""The public Python API, by its parts; its names are imported from `rebalance_verifier` itself."""
