"""The mutation score of the model: every guard and every update of ``model/protocol`` is wrong once.

``python -m tools.mutation`` makes every mutant, explores it on a battery of small groups until a clause
falls, runs the tests of single steps on it, holds it against the logic (``oracles``), and writes
tools/mutation/mutation.md. ``--only TEXT`` takes the mutants whose key contains TEXT,
``--list`` shows the mutants, ``--jobs N`` runs N at once.

A mutant is one change of the syntax tree, in memory. What a named decision does (``"..." in decisions``)
is left alone: switching it is a mutant already, with a test of its own. So are the observations of a step
(``seen=``): they are what the clauses look at, not what the model does.
"""
