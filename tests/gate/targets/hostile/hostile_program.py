"""A program that speaks the protocol until a member called BAD is in the group; argv[1] says what then."""

import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1]
if MODE == "alone":  # as with a fixed port or a lock file; the first one cleans up behind itself
    lock = os.open(sys.argv[2], os.O_CREAT | os.O_EXCL)
OUT = open(1, "wb", buffering=0, closefd=False)  # noqa: SIM115


def write(data):
    view = memoryview(data)
    while view:
        view = view[OUT.write(view) :]


def misbehave(seq):
    good = {"seq": seq, "result": {"assignment": {}}}
    match MODE:
        case "invalid_json":
            write(b"{no json\n")
        case "invalid_utf8":
            write(b'{"seq":\xff}\n')
        case "nan":
            write(b'{"seq":%d,"result":{"assignment":{"A":[["t",[NaN]]]}}}\n' % seq)
        case "deep":
            write(b"[" * 200_000 + b"\n")
        case "not_object":
            write(b"[1]\n")
        case "wrong_seq":
            reply({**good, "seq": seq - 1})
        case "no_seq":
            reply({"result": {"assignment": {}}})
        case "bool_seq":
            reply({**good, "seq": True})
        case "twice":
            reply(good)
            reply(good)
        case "two_kinds":
            reply({**good, "skipped": {"message": "x"}})
        case "no_assignment":
            reply({"seq": seq, "result": {"asignment": {}}})
        case "bad_index":
            reply({"seq": seq, "result": {"assignment": {"A": [["t", ["x"]]]}}})
        case "duplicate_member":
            write(b'{"seq":%d,"result":{"assignment":{"A":[["t",[0]]],"A":[]}}}\n' % seq)
        case "endless_line":
            while True:
                write(b"x" * 2**20)
        case "endless_trickle":
            while True:
                write(b"x")
                time.sleep(0.01)
        case "endless_lines":
            reply(good)
            while True:
                write(b"chatter\n" * 1000)
        case "close_stdout":
            os.close(1)
            time.sleep(60)
        case "close_stdin":
            os.close(0)
            time.sleep(60)
        case "half_line_and_exit":
            write(b'{"seq":')
            sys.exit(5)
        case "answer_and_exit":
            reply(good)
            sys.exit(0)
        case "grandchild_keeps_pipes":
            subprocess.Popen(["sleep", "60"])
            sys.exit(0)
        case "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "slow_in_pieces":
            for byte in json.dumps(good).encode() + b"\n":
                write(bytes([byte]))
                time.sleep(0.001)
        case "skipped":
            reply({"seq": seq, "skipped": {"message": "not here", "issue_url": "https://example.org/2"}})
        case "errored":
            reply({"seq": seq, "errored": {"message": "oops", "traceback": "line 1"}})


def reply(message):
    write(json.dumps(message).encode() + b"\n")


if MODE == "slow_start":
    time.sleep(60)
if MODE == "start_exit":
    sys.stderr.write("cannot find my configuration\n")
    sys.exit(4)
if MODE == "once" and os.path.exists(sys.argv[2]):
    sys.exit(6)

for line in sys.stdin.buffer:
    request = json.loads(line)
    seq = request["seq"]
    if request["cmd"] == "hello":
        hello = {"name": MODE, "protocols": ["eager", "cooperative"]}
        if MODE == "hello_typo":
            hello["promisses"] = ["sticky"]
        if MODE == "hello_no_protocols":
            hello["protocols"] = []
        if MODE == "hello_garbage":
            write(b"Welcome to the shell\n")
        reply({"seq": seq, "result": hello})
        if MODE == "once":
            open(sys.argv[2], "w").close()
    elif request["cmd"] == "assign":
        if any(member["id"] == "BAD" for member in request["members"]):
            if MODE == "once":
                sys.exit(6)
            misbehave(seq)
        else:
            reply({"seq": seq, "result": {"assignment": {m["id"]: [["t", [0]]] for m in request["members"]}}})
    elif MODE == "ignores_bye":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(10_000)
