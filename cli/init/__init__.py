"""``rebalance init``: the first files of a project that judges its assignor in CI."""
