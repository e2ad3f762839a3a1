"""The mutation score: what happens when one thing in the model, the clauses or the logic is wrong?

``python -m tools.mutation`` makes three kinds of mutants and writes tools/mutation/mutation.md:

- Every guard and update of ``model/classic`` is wrong once. The tests of single steps are run on it
  (``switched``), a battery of small groups is explored until a clause falls, and random runs are held against
  the logic (``oracles``).
- Every guard of the clauses of a group is, too: the tests of single clauses are run on it (``clauses``).
- Every guard of the logic is dropped once, and the theorems are proved of what that lets happen (``guards``).

``--of KIND`` takes one of the three, ``--only TEXT`` the mutants whose key contains TEXT, ``--list`` shows
them, ``--jobs N`` runs N at once. ``--log FILE`` keeps what is known of each as it ends, ``--again FILE``
goes on from there.

Of the tests, the groups and the battery a mutant is asked those alone in which it changes any value: all
mutants are put beside the original once, and nothing else can tell them from it. Most end with a test, which
takes a twentieth of a second; one that lives takes about fifteen seconds.

A mutant is one change of the syntax tree, in memory. What a named decision does (``"..." in decisions``)
is left alone: switching it is a mutant already, with a test of its own. So are the observations of a step
(``seen=``): they are what the clauses look at, not what the model does.
"""
