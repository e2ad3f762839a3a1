"""The parser of all commands: what it says of a wrong use is the reason, and one line of usage."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rebalance_verifier.base.names import meant, unknown
from rebalance_verifier.cli.console.terminal import UsageError, print_out

HELP_COLUMN = 26
"""Column at which the help of an option begins."""


_REPEATABLE = (argparse._AppendAction, argparse._CountAction, argparse._HelpAction)
"""Kinds of options that may be given several times."""


class Parser(argparse.ArgumentParser):
    """Takes options by their full names only: a beginning that is unique today is not tomorrow.

    Every error is a UsageError.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(allow_abbrev=False, **arguments)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.removeprefix('argument ')}\n{self.short_usage()}")

    def short_usage(self) -> str:
        """Return one line: what the command needs, and where the rest is."""
        return f"usage: {self._usage()}; `{self.prog} --help` has more"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            kind = action.dest if action.option_strings else str(action.metavar).lower()
            kind = kind.replace("what", "list").replace("_", " ")
            sentence = unknown(kind, str(value), action.choices)
            raise argparse.ArgumentError(action if action.option_strings else None, sentence)

    def _print_message(self, message: str, file: Any = None) -> None:
        print_out(message.rstrip("\n"))

    def format_help(self) -> str:
        """Return usage, description and examples, then the options in groups."""
        self._arrange()
        head, rest = (
            argparse.HelpFormatter(self.prog, max_help_position=HELP_COLUMN) for _ in ("head", "rest")
        )
        head.add_usage(self._usage(), (), ())
        head.add_text(self.description)
        for group in self._action_groups:
            rest.start_section(group.title)
            rest.add_text(group.description)
            rest.add_arguments(group._group_actions)
            rest.end_section()
        rest.add_text(self.epilog)
        shown = self._table("examples")
        lines = [line for typed, meaning in shown.items() for line in (f"  {typed}", f"      {meaning}")]
        examples = "".join(f"{line}\n" for line in ("examples:", *lines, "")) if lines else ""
        return f"{head.format_help()}\n{examples}{rest.format_help()}"

    def _usage(self) -> str:
        needed = [
            f"{action.option_strings[0]} {action.metavar}"
            for action in self._actions
            if action.required and action.option_strings
        ]
        named = [_called(action) for action in self._actions if not action.option_strings]
        return " ".join([self.prog, *needed, *named, "[OPTION ...]"])

    def _table(self, name: str) -> dict[str, Any]:
        """Return what the file beside this module says of the command."""
        from rebalance_verifier.base.tables import table

        found: dict[str, Any] = table(__file__)[name].get(self.prog, {})
        return found

    def _arrange(self) -> None:
        """Put the options into the groups that the file beside this module names, in its order."""
        groups = {group.title: group for group in self._action_groups}
        ordered = [self._positionals]
        for title, names in self._table("groups").items():
            group = groups.get(title) or argparse._ArgumentGroup(self, title)
            ordered.append(group)
            for name in names:
                action = self._option_string_actions[name]
                for other in self._action_groups:
                    if action in other._group_actions:
                        other._group_actions.remove(action)
                group._group_actions.append(action)
        ordered += [one for one in self._action_groups if one not in ordered and one is not self._optionals]
        ordered.append(self._optionals)
        self._action_groups[:] = [group for group in ordered if group._group_actions]

    def arranged_groups(self) -> list[argparse._ArgumentGroup]:
        """Return the groups of options in the order of the help."""
        self._arrange()
        return list(self._action_groups)

    def commands(self) -> Mapping[str, Parser]:
        """Return the parser of each command; empty in that of a command."""
        for action in self._actions:
            if isinstance(action, Commands):
                return action.parsers
        return {}

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Return the options of a command. Raises UsageError."""
        first = argv[0]
        if first.startswith("-") and first.partition("=")[0] not in self._option_string_actions:
            raise UsageError(f"{first} goes behind a command, as in `rebalance check {first}`")
        options, rest = self.parse_known_args(argv)
        if rest:
            self._refuse(options.name, next((one for one in rest if one.startswith("-")), rest[0]))
        return options

    def refuse_repeated(self, argv: Sequence[str]) -> None:
        """Raise UsageError for an option that is given twice and takes one value: argparse would drop the
        first without a word."""
        own = self.commands().get(argv[0]) if argv else None
        first: dict[str, str] = {}
        for word in argv[1:] if own else ():
            name = word.partition("=")[0]
            action = own._option_string_actions.get(name) if own else None
            if action is None or isinstance(action, _REPEATABLE):
                continue
            if before := first.get(action.dest):
                both = name if name == before else f"{before} and {name}"
                commas = "; several names go behind it, with commas" * ("[," in str(action.metavar))
                raise UsageError(f"{both}: given twice, say it once{commas}")
            first[action.dest] = name

    def _refuse(self, command: str, given: str) -> NoReturn:
        every = self.commands()
        option, own = given.partition("=")[0], every[command]._option_string_actions
        if not given.startswith("-"):
            from rebalance_verifier.traces.recognise import right_command

            if other := right_command(Path(given)):
                raise UsageError(other)
            own_names = [_called(action) for action in every[command]._actions if not action.option_strings]
            takes = f"takes {' '.join(own_names)} only" if own_names else "takes options only"
            raise UsageError(f"{given!r} is too much: {command} {takes}\n{every[command].short_usage()}")
        others = [name for name, parser in every.items() if option in parser._option_string_actions]
        owners = ", ".join(others[:3]) + ", among others" * (len(others) > 3)
        hint = f"it belongs to {owners}" if others else meant(option, own)
        hint = hint or f"`rebalance {command} --help` shows those it has"
        raise UsageError(f"{command} has no option {option}: {hint}")


class Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """The commands of a parser. One is loaded when its parser is asked for, not its name."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.parsers = _Parsers(str(options["prog"]))
        self.choices = self._name_parser_map = self.parsers  # type: ignore[assignment]

    def offer(self, name: str, sentence: str, load: Callable[[_Parsers], None]) -> None:
        """Name a command and say what it does; ``load`` adds its parser to what it is given."""
        self._choices_actions.append(self._ChoicesPseudoAction(name, (), sentence))
        self.parsers.loads[name] = load


class _Parsers(Mapping[str, Parser]):
    """Command -> its parser."""

    def __init__(self, prog: str) -> None:
        self.prog = prog
        self.loads: dict[str, Callable[[_Parsers], None]] = {}
        self._made: dict[str, Parser] = {}

    def add_parser(self, name: str, **options: Any) -> Parser:
        made = self._made[name] = Parser(prog=f"{self.prog} {name}", **options)
        return made

    def __getitem__(self, name: str) -> Parser:
        if name not in self._made:
            self.loads[name](self)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.loads)

    def __len__(self) -> int:
        return len(self.loads)


def _called(action: argparse.Action) -> str:
    """Return how a usage line shows an argument without a name."""
    name = str(action.metavar or action.dest)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(str(action.nargs), name)


def options_of(parser: Parser) -> Iterator[str]:
    """Yield the long names of the options of a command."""
    for action in parser._actions:
        yield from (name for name in action.option_strings if name.startswith("--"))
