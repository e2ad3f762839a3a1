#!/bin/sh
# z3-solver 5.4.1.0: the printer of SMT-LIB leaves a function's name unquoted where it is a reserved word.
#
# Guess before the run: to_smt2() writes |exists|, since SMT-LIB 2.6 (3.1) reserves the word; at the least z3
# reads its own text back with the same answer.
# Seen: it writes (declare-fun exists (Int) Bool) and (exists 0). Read back, z3 reports two errors, asserts
# nothing, and answers sat for a contradiction. `forall`, `let`, `match` and `!` fare alike, `as` and `_` are
# refused where they are declared, too; `par`, `assert` and `push` are read. A reader who looks at the last line
# alone takes an unsatisfiable problem for a satisfiable one.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --only-binary :all: --target "$work/site" z3-solver==5.4.1.0
PYTHONPATH="$work/site" python3 - "$work/site/bin/z3" >"$work/seen" <<'PYTHON'
import subprocess
import sys

import z3

for name in ("exists", "forall", "let", "match", "!", "as", "_", "par", "assert", "push", "fine"):
    holds = z3.Function(name, z3.IntSort(), z3.BoolSort())
    solver = z3.Solver()
    solver.add(holds(0), z3.Not(holds(0)))
    text = solver.to_smt2()
    (declared,) = [line for line in text.splitlines() if line.startswith("(declare-fun")]
    read = subprocess.run([sys.argv[1], "-in"], input=text, capture_output=True, text=True)
    printed = read.stdout.split("\n")
    errors = sum(line.startswith("(error") for line in printed)
    answer = [line for line in printed if line in ("sat", "unsat", "unknown")]
    print(declared, "| built:", solver.check(), "| read back:", *answer, "| errors:", errors)
PYTHON
cat "$work/seen"
cat >"$work/expected" <<'TEXT'
(declare-fun exists (Int) Bool) | built: unsat | read back: sat | errors: 2
(declare-fun forall (Int) Bool) | built: unsat | read back: sat | errors: 2
(declare-fun let (Int) Bool) | built: unsat | read back: sat | errors: 2
(declare-fun match (Int) Bool) | built: unsat | read back: sat | errors: 2
(declare-fun ! (Int) Bool) | built: unsat | read back: sat | errors: 2
(declare-fun as (Int) Bool) | built: unsat | read back: sat | errors: 3
(declare-fun _ (Int) Bool) | built: unsat | read back: sat | errors: 3
(declare-fun par (Int) Bool) | built: unsat | read back: unsat | errors: 0
(declare-fun assert (Int) Bool) | built: unsat | read back: unsat | errors: 0
(declare-fun push (Int) Bool) | built: unsat | read back: unsat | errors: 0
(declare-fun fine (Int) Bool) | built: unsat | read back: unsat | errors: 0
TEXT
diff "$work/expected" "$work/seen" && echo "as seen before"
