"""``python -m ...host TARGET``: a Python assignor as a program that speaks the stdio
protocol.

The target runs in this process, so it can crash, hang or exit it: that is for the driver to survive. What
the host does is keep the target's hands off the protocol and turn everything it raises into a reply.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import operator
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

from rebalance_verifier.base.processes.lines import Garbage, Json, show, to_line, to_text
from rebalance_verifier.gate.targets.hosts.hosted import TargetError, describe, load, look_here
from rebalance_verifier.gate.targets.hosts.messages import (
    VERSION,
    Skipped,
    decode_assign,
    decode_user_data_request,
    encode_assignment,
    encode_hello,
)
from rebalance_verifier.gate.targets.hosts.task_messages import (
    change_of,
    copy_of,
    decode_application,
    encode_tasks,
    tasks_of,
)
from rebalance_verifier.model.partitions_json import are_indexes, encode_bytes, to_partition
from rebalance_verifier.model.tasks import Application, TaskAssignment
from rebalance_verifier.model.values import Cluster, GroupSubscription, Partitions, TopicPartition


def ask(
    assignor: Any, cluster: Cluster, group: GroupSubscription
) -> tuple[dict[str, Partitions], str | None]:
    """Return the assignment that a Python assignor returns, and what it changed in its input, if it did.

    Raises Garbage when it returns something else than a mapping of member to partitions, and whatever
    the assignor raises. The assignor gets copies of the mappings, so the caller's stay as they are.
    """
    topics, members = dict(cluster.topics), dict(group)
    result = _assignment(assignor.assign(Cluster(topics), members))
    changes = [
        getattr(assignor, "mutated", None),
        _change("cluster topics", cluster.topics, topics),
        _change("group", group, members),
    ]
    return result, "; ".join(str(change) for change in changes if change) or None


def ask_tasks(assignor: Any, application: Application) -> tuple[TaskAssignment, str | None]:
    """Return the assignment that a Python task assignor returns, and what it changed in its input, if it did.

    Raises Garbage when it returns something else, and whatever the assignor raises.
    """
    given = copy_of(application)
    result = tasks_of(assignor.assign_tasks(given))
    return result, change_of(application, given)


def ask_user_data(assignor: Any, owned: Partitions, generation: int) -> bytes | None:
    """Return the user data that a Python assignor returns; None when it has no such method.

    Raises Garbage when it is not bytes, and whatever the assignor raises.
    """
    method = getattr(assignor, "user_data", None)
    data = method(owned, generation) if callable(method) else None
    if data is not None and not isinstance(data, bytes | bytearray | memoryview):
        raise Garbage(f"user_data returned {show(data)}, expected bytes or None")
    return None if data is None else bytes(data)


def main(arguments: list[str]) -> int:
    """Serve the one target named on the command line until ``bye`` or the end of input."""
    if len(arguments) != 1:
        print("usage: python -m rebalance_verifier.gate.targets.hosts.host TARGET", file=sys.stderr)
        return 2
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a target that crashes leaves no core file
    faulthandler.enable()  # where it crashed
    faulthandler.register(signal.SIGUSR1)  # where it hangs, when the driver asks
    requests, replies = _take_stdio()
    look_here(arguments[0])  # after our own imports, so that nothing there shadows them
    sys.argv = arguments
    serve(arguments[0], requests, replies)
    return 0


def serve(spec: str, requests: Iterable[bytes], replies: BinaryIO) -> None:
    """Answer every request, in order."""
    assignor: Any = None
    for line in requests:
        request = json.loads(line)  # of the driver, which is ours
        if request["cmd"] == "bye":
            return
        try:
            if request["cmd"] == "hello":
                assignor = load(spec)
                _collect_seldom()
            reply = {"result": _result(assignor, request)}
        except Skipped as skipped:
            reply = {"skipped": {"message": _clean(skipped), "issue_url": skipped.issue_url}}
        except Garbage as garbage:
            reply = {"garbage": {"message": _clean(garbage)}}
        except TargetError as error:
            reply = {"errored": {"message": _clean(error), "traceback": error.detail}}
        except BaseException as error:  # SystemExit and KeyboardInterrupt of the target's included
            reply = {"errored": {"message": name_of(error), "traceback": trace_of(error)}}
        replies.write(to_line({"seq": request["seq"], **reply}))
        replies.flush()


def _result(assignor: Any, request: Json) -> Json:
    match request["cmd"]:
        case "hello" if request["version"] == VERSION:
            return encode_hello(describe(assignor))
        case "assign":
            return encode_assignment(*ask(assignor, *decode_assign(request)))
        case "assign_tasks":
            return encode_tasks(*ask_tasks(assignor, decode_application(request)[1]))
        case "user_data":
            return {"user_data": encode_bytes(ask_user_data(assignor, *decode_user_data_request(request)))}
    raise TargetError(f"this host speaks version {VERSION} of the protocol and does not know {show(request)}")


def _collect_seldom() -> None:
    """Look for cycles among what the target makes, and not every few calls at all that is loaded."""
    gc.freeze()
    gc.set_threshold(50_000)


def _take_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Return the real stdin and stdout for ourselves; the target reads nothing and prints to stderr, from C
    too."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what it prints must not get lost
    return requests, replies


# --- what Python assignors return ------------------------------------------------------------------------


def _assignment(result: object) -> dict[str, Partitions]:
    if not isinstance(result, Mapping):
        raise Garbage(f"assign returned {show(result)}, expected a dict of member -> partitions")
    return {
        to_text(member, "assign returned a member id"): _partitions(partitions, member)
        for member, partitions in result.items()
    }


def _partitions(value: object, member: object) -> Partitions:
    """Return what ``member`` is assigned."""
    if type(value) is tuple and set(map(type, value)) == {TopicPartition}:  # as it should be
        topics, indexes = zip(*value, strict=True)
        if are_indexes(indexes) and set(map(type, topics)) == {str}:
            for topic in dict.fromkeys(topics):
                to_text(topic, f"assignment of {show(member)}: topic")
            return value
    where = f"assignment of {show(member)}"
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise Garbage(f"{where}: expected an iterable of partitions, got {show(value)}")
    found = tuple([_partition(item, where) for item in value])
    # The order of a set depends on the hash seed; ours must not.
    return tuple(sorted(found)) if isinstance(value, set | frozenset) else found


def _partition(item: object, where: str) -> TopicPartition:
    if isinstance(item, tuple | list) and len(item) == 2:
        topic, index = item
    elif hasattr(item, "topic") and hasattr(item, "partition"):
        topic, index = item.topic, item.partition
    else:
        raise Garbage(f"{where}: expected (topic, partition), got {show(item)}")
    if not isinstance(index, bool) and hasattr(index, "__index__"):  # numpy's integers
        index = operator.index(index)
    return to_partition(to_text(topic, where, "topic"), index, where)


def _change(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Return how the two mappings differ, None when they do not."""
    if list(before.items()) == list(after.items()):
        return None
    differences = [
        *(f"removed {show(key)}" for key in before if key not in after),
        *(f"added {show(key)}" for key in after if key not in before),
        *(f"changed {show(key)}" for key in before if key in after and before[key] != after[key]),
    ]
    return f"{what}: {', '.join(differences) or 'order changed'}"


# --- what targets raise ----------------------------------------------------------------------------------


def name_of(error: BaseException) -> str:
    """Return an exception in one line."""
    kind = type(error).__name__
    try:
        text = _clean(error).strip()
    except Exception:  # its __str__ may raise, or return no text
        return kind
    return f"{kind}: {text.splitlines()[0]}" if text else kind


def trace_of(error: BaseException) -> str:
    """Return the traceback of an exception, at most its 40 innermost frames."""
    try:
        return _clean("".join(traceback.format_exception(error, limit=-40)))
    except Exception:
        return name_of(error)


def _clean(value: object) -> str:
    """Return text that survives UTF-8, of bounded length."""
    return str(value)[:20_000].encode("utf-8", "replace").decode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
