"""A search for scenarios that break a clause, apart from the target that it is on."""
