"""``python hosting.py``: a program that runs clients side by side, in the protocol of `hosted`.

The first argument of a client is its habit: ``wait`` until it is ended, ``fail``, ``die`` with the process.
"""

import os
import sys
from pathlib import Path
from urllib.parse import unquote


def answer(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    count = 0
    for line in sys.stdin:
        what, *rest = map(unquote, line.rstrip("\n").split(" "))
        if what == "end":
            answer(f"-{rest[0]} 0")
            continue
        count += 1
        answer(f"+{count}")
        output, habit, *more = rest
        with Path(output).open("a") as file:
            print(os.getpid(), *map(repr, more), file=file)
        if habit == "fail":
            answer(f"-{count} 1")
        if habit == "die":
            os._exit(3)


if __name__ == "__main__":
    main()
