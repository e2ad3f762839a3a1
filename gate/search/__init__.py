"""The check of an assignor: plan, search, verdict."""
