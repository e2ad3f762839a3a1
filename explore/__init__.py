"""Exhaustive and random search of a machine: verdicts, shortest counterexamples, lassos."""
