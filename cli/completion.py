"""Completion in the shell: what the shell is given to run, and what it then asks of us."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from rebalance_verifier.cli.parser import Parser, options_of

SCRIPTS: Mapping[str, str] = {
    "bash": """_rebalance() {
  local IFS=$'\\n'
  COMPREPLY=($(rebalance --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -o nosort -F _rebalance rebalance""",
    "zsh": """#compdef rebalance
_rebalance() {
  local -a found
  found=("${(@f)$(rebalance --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n $found ]]; then compadd -- $found; else _files; fi
}
compdef _rebalance rebalance""",
    "fish": """function __rebalance
  rebalance --complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c rebalance -a '(__rebalance)'""",
}
"""Shell -> what makes it complete; `eval "$(rebalance --completion bash)"`."""


def candidates(parser: Parser, typed: Sequence[str]) -> list[str]:
    """Return what may stand where the last of the ``typed`` words stands, which begins so; files are the
    shell's."""
    *before, start = typed or ("",)
    commands = parser.commands()
    if not before:
        found: Iterable[str] = [*commands, *options_of(parser)]
    elif before[0] not in commands:
        found = ()
    else:
        command = commands[before[0]]
        action = command._option_string_actions.get(before[-1])
        takes_value = action is not None and action.nargs != 0
        if action is not None and takes_value:
            found = action.choices or _values(before[-1])
        elif start.startswith("-"):
            found = options_of(command)
        else:
            named = [one for one in command._actions if not one.option_strings and one.choices]
            found = [name for one in named for name in one.choices or ()] or _values(before[0])
    return [one for one in found if one.startswith(start)]


def _values(name: str) -> list[str]:
    """Return what an option or the argument of a command is one of, as far as there is a list."""
    if name not in _LISTS:
        return []
    module, attribute = _LISTS[name]
    found = getattr(import_module(f"rebalance_verifier.{module}"), attribute)
    names: Iterable[str] = found() if callable(found) else found
    return [one.removesuffix("...").replace(" ", "-") for one in names if not one.startswith("wire ")]


_LISTS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("explore", "--scenario"), ("explore.groups.scenarios", "SCENARIOS")),
    **dict.fromkeys(("check", "compare", "--target"), ("gate.targets.resolve", "known")),
    **dict.fromkeys(("--from", "--to", "--via"), ("explore.groups.upgrade_paths", "CHOICES")),
    "bugs": ("model.bugs.catalogue", "CATALOGUE"),
    "--clause": ("properties.assignors.clauses", "CLAUSES"),
    "--faults": ("model.classic.group", "FAULTS"),
    "--release": ("model.bugs.profiles", "CLIENTS"),
    "--broker": ("model.bugs.profiles", "BROKERS"),
    "--witness": ("properties.group.clauses", "WITNESSES"),
    "--report": ("base.saved", "REPORTS"),
    "--switch": ("model.bugs.decisions", "DECISIONS"),
}
"""Option or command -> where the names are that it takes: a module below ``rebalance``, and what of it."""
