"""A run that somebody steps through, as lines: what happens, what everybody is then, what can happen next."""

from __future__ import annotations

from rebalance_verifier.base.text import clean, cut, page_width
from rebalance_verifier.model.steps import SteppedRun
from rebalance_verifier.report.frame import labelled

MAX_CHOICES = 12

KEYS = (
    "Enter goes on, b back, a number takes that step, g N goes to step N, c shows all that can happen, "
    "w FILE writes the run, q ends"
)


def shown(stepper: SteppedRun, everything: bool = False) -> list[str]:
    """Return the step that is shown; ``*`` before who has changed. ``everything``: all that can happen
    next."""
    view, changed = stepper.views[stepper.at], stepper.changed()
    left = f", left after step {stepper.left}" if stepper.left is not None else ""
    head = f"{view.label} of {stepper.views[-1].label}{left}"
    lines = ["", *labelled(head, ("environment: " if view.fault else "") + view.what, width=len(head) + 2)]
    width = max((len(name) for name, _ in view.parties), default=0) + 4
    lines += [line for one in view.seen for line in labelled("", one, width=width)]
    for name, text in view.parties:
        lines += labelled(f"{'*' if name in changed else ' '} {clean(name)}", text, width=width)
        if name in changed:
            lines += labelled("", f"was {changed[name] or 'not there'}", width=width)
    following = stepper.events[stepper.at] if stepper.at < len(stepper.events) else None
    choices = stepper.choices()
    for number, (event, next_) in enumerate(choices[: None if everything else MAX_CHOICES], 1):
        sign = ">" if event == following else " "
        lines.append(cut(f" {sign}{number:>3}  {clean(next_.what)}", page_width()))
    if len(choices) > MAX_CHOICES and not everything:
        lines.append(f"      and {len(choices) - MAX_CHOICES} more: c")
    return lines
