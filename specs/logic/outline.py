"""What the steps of the proof rest on, besides the claim itself.

Found by Z3 as unsatisfiable cores, all actions together. It only says what is tried first: where an entry is
missing or out of date the prover takes all hypotheses, and needs longer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

RESTS_ON: Mapping[str, tuple[str, ...]] = {
    goal: tuple(hypotheses)
    for goal, hypotheses in json.loads(Path(__file__).with_name("outline.json").read_text()).items()
}
"""Goal -> the invariants and calm facts that it follows from."""
