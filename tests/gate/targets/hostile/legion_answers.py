"""Tries by what a target answers, and by what it does to its own host."""

import builtins
import os
import socket
import sys
from typing import Any

from legion_tries import MIB, everything, try_  # type: ignore[import-not-found]
from rebalance_verifier.gate.targets.hosts.messages import Skipped

# --- what it answers ----------------------------------------------------------------------------------------


@try_("answers", "garbage|timeout|memory")
def many_members(cluster, group):
    """names 300,000 members"""
    return {f"m{number}": [] for number in range(300_000)}


@try_("answers", "garbage|timeout|memory")
def many_members_of_one_partition(cluster, group):
    """gives one partition to 300,000 members"""
    return {f"m{number}": [("t", 0)] for number in range(300_000)}


@try_("answers", "garbage|timeout|memory")
def one_partition_often(cluster, group):
    """gives one partition to one member 300,000 times"""
    return {"A": [("t", 0)] * 300_000}


@try_("answers", "answer")
def one_partition_a_thousand_times(cluster, group):
    """gives one partition to 900 members"""
    return {f"m{number}": [("t", 0)] for number in range(900)}


@try_("answers", "garbage|timeout|memory")
def many_partitions(cluster, group):
    """gives 300,000 partitions that do not exist"""
    return {"A": [("t", number) for number in range(300_000)]}


@try_("answers", "garbage|timeout|memory")
def many_topics(cluster, group):
    """gives partitions of 200,000 topics that do not exist"""
    return {"A": [(f"t{number}", 0) for number in range(200_000)]}


@try_("answers", "garbage")
def long_line(cluster, group):
    """answers with more than is read of a line"""
    return {
        "A": [("t" * 30_000, 2 * number) for number in (0, 1)]
        + [(f"{n}" * 3000, 0) for n in range(1000, 2000)]
    }


@try_("answers", "garbage")
def long_names(cluster, group):
    """names a topic of a mebibyte"""
    return {"A": [("t" * MIB, 0)]}


@try_("answers", "garbage")
def surrogate(cluster, group):
    """names a topic that is no Unicode"""
    return {"A": [("\ud800", 0)]}


@try_("answers", "garbage")
def huge_index(cluster, group):
    """gives partition 10 to the power of 1000"""
    return {"A": [("t", 10**1000)]}


@try_("answers", "garbage")
def too_huge_index(cluster, group):
    """gives partition 10 to the power of 10000, which Python does not print"""
    return {"A": [("t", 10**10_000)]}


@try_("answers", "garbage")
def not_a_number(cluster, group):
    """gives partition NaN"""
    return {"A": [("t", float("nan"))]}


@try_("answers", "garbage")
def null_members(cluster, group):
    """names no member"""
    return {None: []}


@try_("answers", "errored")
def lying_length(cluster, group):
    """returns a mapping whose length and items raise"""

    class Lies(dict):  # type: ignore[type-arg]
        def __len__(self):
            raise OverflowError

        def items(self):
            raise ZeroDivisionError

    return Lies(A=[])


@try_("answers", "errored")
def error_that_cannot_be_shown(cluster, group):
    """raises an error whose text and name raise too"""

    class Unprintable(BaseException):
        def __str__(self):
            raise RuntimeError

        __repr__ = __str__

    raise Unprintable


@try_("answers", "errored")
def endless_causes(cluster, group):
    """raises an error that is its own cause"""
    error = ValueError("mine")
    error.__cause__ = error.__context__ = error
    raise error


@try_("answers", "errored|memory")
def error_with_a_huge_text(cluster, group):
    """raises an error of 64 MiB"""
    raise ValueError("x" * 64 * MIB)


@try_("answers", "errored")
def recursion(cluster, group):
    """recurses for ever"""
    return recursion(cluster, group)


@try_("answers", "garbage")
def nested(cluster, group):
    """returns a list in a list in a list, a hundred thousand deep"""
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return {"A": found}


@try_("answers", "errored")
def exits(cluster, group):
    """leaves by SystemExit"""
    sys.exit("bye")


@try_("answers", "errored")
def interrupts(cluster, group):
    """raises KeyboardInterrupt"""
    raise KeyboardInterrupt


@try_("answers", "skipped")
def declines_at_length(cluster, group):
    """declines with a hundred thousand lines and a link that is a script"""
    raise Skipped("no\n" * 100_000, "javascript:alert(1)")


@try_("answers", "answer")
def changes_what_it_was_given(cluster, group):
    """changes group and cluster while it is at work"""
    answer = everything(cluster, group)
    group.clear()
    cluster.topics.clear()
    return answer


@try_("answers", "answer")
def markup_for_members(cluster, group):
    """names a member that is markup and commands of a terminal"""
    return {"\x1b[2J<script>::error::\n##[error]\u202e": [("t", 0)]}


# --- its own host -------------------------------------------------------------------------------------------


@try_("its process", "crash")
def patches_builtins(cluster, group):
    """takes the builtins out of its process"""
    for name in ("len", "isinstance", "type", "dict", "set", "str", "open", "print", "map", "zip"):
        setattr(builtins, name, None)
    os._exit(9)


@try_("its process", "garbage")
def patches_json(cluster, group):
    """lets our host write what it wants instead of an answer"""
    host: Any = sys.modules["__main__"]
    host.to_line = lambda message: b"{no json\n"
    return everything(cluster, group)


@try_("its process", "garbage")
def forges_other_answers(cluster, group):
    """answers the questions that it has not been asked yet"""
    host: Any = sys.modules["__main__"]
    line = host.to_line
    host.to_line = lambda message: b"".join(line({**message, "seq": message["seq"] + n}) for n in (1, 2, 3))
    return everything(cluster, group)


@try_("its process", "garbage|memory|timeout")
def forges_a_duplicate_key(cluster, group):
    """answers with 300,000 keys, the last of which is there twice"""
    host: Any = sys.modules["__main__"]
    keys = ",".join(f'"m{number}":[]' for number in [*range(300_000), 299_999])
    host.to_line = lambda message: (
        b'{"seq":%d,"result":{"assignment":{%s}}}\n' % (message["seq"], keys.encode())
    )
    return everything(cluster, group)


@try_("its process", "garbage|memory|timeout")
def forges_empty_lists(cluster, group):
    """answers with three million empty lists"""
    host: Any = sys.modules["__main__"]
    lists = b",".join([b"[]"] * 2_500_000)
    host.to_line = lambda message: (
        b'{"seq":%d,"result":{"assignment":{"A":[%s]}}}\n' % (message["seq"], lists)
    )
    return everything(cluster, group)


@try_("its process", "garbage")
def forges_depth(cluster, group):
    """answers with a million brackets"""
    host: Any = sys.modules["__main__"]
    host.to_line = lambda message: b"[" * 1_000_000 + b"\n"
    return everything(cluster, group)


@try_("its process", "garbage")
def forges_digits(cluster, group):
    """answers with a number of a million digits"""
    host: Any = sys.modules["__main__"]
    host.to_line = lambda message: b'{"seq":%s}\n' % (b"9" * 1_000_000)
    return everything(cluster, group)


def _forges(text):
    def forge(cluster, group):
        host: Any = sys.modules["__main__"]
        host.to_line = lambda message: text.replace(b"SEQ", b"%d" % message["seq"]) + b"\n"
        return everything(cluster, group)

    return forge


_ANSWER = b'{"seq":SEQ,"result":{"assignment":{"A":[["t",[%s]]]}}}'
for _name, _text, _what in (
    ("infinite", _ANSWER % b"1e999", "a partition that is more than any number"),
    ("negative_zero", _ANSWER % b"-0.0", "a partition that is less than nothing by its sign"),
    ("fraction", _ANSWER % b"0.5", "half a partition"),
    (
        "deep_inside",
        _ANSWER % (b"[" * 50_000 + b"]" * 50_000),
        "fifty thousand brackets in place of a partition",
    ),
    ("two_numbers", b'{"seq":1,"seq":SEQ,"result":{"assignment":{}}}', "two numbers of a request"),
    ("two_results", b'{"seq":SEQ,"result":{"assignment":{}},"result":{"assignment":{}}}', "two results"),
    (
        "number_and_half",
        b'{"seq":SEQ.0,"result":{"assignment":{}}}',
        "a number of a request that is no integer",
    ),
    ("two_in_a_line", b'{"seq":SEQ,"result":{"assignment":{}}}' * 2, "two answers in a line"),
    ("byte_order_mark", b"\xef\xbb\xbf" + _ANSWER % b"0", "a byte order mark before it"),
    ("nothing", b"", "an empty line"),
    ("zeros", b"\0" * 1000, "a thousand zeros"),
    ("utf_16", (_ANSWER % b"0").decode().encode("utf-16"), "UTF-16"),
):
    _function = _forges(_text)
    _function.__name__, _function.__doc__ = f"forges_{_name}", f"answers with {_what}"
    try_("its process", "garbage")(_function)


@try_("its process", "garbage")
def forges_a_pickle(cluster, group):
    """answers with a pickle that runs a command"""
    import pickle

    class Command:
        def __reduce__(self):
            return os.system, ("touch pickled",)

    host: Any = sys.modules["__main__"]
    host.to_line = lambda message: pickle.dumps(Command()) + b"\n"
    return everything(cluster, group)


@try_("its process", "answer")
def patches_the_clauses(cluster, group):
    """takes every clause out of our tables, in its process"""
    from rebalance_verifier.properties.assignors import clauses

    clauses.TABLE = ()
    clauses.CLAUSES.clear()
    return {}


@try_("its process", "answer")
def makes_files(cluster, group):
    """fills the directory for temporary files with links, and with directories that may not be read"""
    directory = os.environ["TMPDIR"]
    os.symlink("/", os.path.join(directory, "root"))
    os.makedirs(os.path.join(directory, "a/b/c"))
    os.chmod(os.path.join(directory, "a"), 0)
    return everything(cluster, group)


@try_("its process", "crash")
def removes_its_directory(cluster, group):
    """removes the directory for temporary files, and ends"""
    os.rmdir(os.environ["TMPDIR"])
    os._exit(2)


@try_("its process", "answer")
def reads_the_protocol(cluster, group):
    """reads from stdin what is for our host"""
    return {"A": [("t", len(sys.stdin.read()))]}


@try_("its process", "answer")
def listens(cluster, group):
    """listens on a port, and leaves it open"""
    kept.append(socket.create_server(("127.0.0.1", 0)))
    return everything(cluster, group)


kept: list[socket.socket] = []
