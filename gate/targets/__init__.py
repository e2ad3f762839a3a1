"""From what a user names to a process that answers."""

HASH_SEED = "0"
"""PYTHONHASHSEED of targets that are Python programs: what depends on it does so alike in every run. It
is the one that turns randomisation off (``sys.flags.hash_randomization``)."""
