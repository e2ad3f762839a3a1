"""A headless Chromium for tests: opens files, at a width and in a colour scheme, and says what it saw.

It is spoken to through a pipe (the DevTools protocol: JSON texts, each with a NUL behind it), so it opens no
port; it is given no network to look at and a profile of its own, and ends with the ``with`` block.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip

_AT_3_AND_4 = """
import os, sys
reads, writes = (os.dup(int(number)) for number in sys.argv[1:3])
keep = [os.dup(number) for number in (reads, writes)]
os.dup2(keep[0], 3); os.dup2(keep[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser reads from 3 and writes to 4, whatever numbers the pipes have got."""

PATIENCE = 60.0
"""Seconds for one answer, on a machine that does other things as well."""


def found() -> str | None:
    """The browser, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Seen:
    """What went on while a page was open: requests beyond the page itself, and what the console said."""

    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)


class Browser:
    """One tab."""

    def __init__(self, to: int, from_: int) -> None:
        self._to, self._from = to, from_
        self._rest, self._number, self._session = b"", 0, ""
        self._events: list[dict[str, Any]] = []
        made = self.ask("Target.createTarget", url="about:blank")
        attached = self.ask("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            one = self._next()
            if one.get("id") == self._number:
                if "error" in one:
                    raise RuntimeError(f"{method}: {one['error']}")
                result: dict[str, Any] = one["result"]
                return result
            self._events.append(one)

    def _next(self) -> dict[str, Any]:
        ends = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            if not select([self._from], [], [], max(0.0, ends - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self._from, 1 << 20)
            if not got:
                raise RuntimeError("the browser has ended")
            self._rest += got
        text, _, self._rest = self._rest.partition(b"\0")
        one: dict[str, Any] = json.loads(text)
        return one

    def open(self, page: Path, width: int, *, dark: bool = False) -> Seen:
        """Open a file; back when it is loaded."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                 mobile=False)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self.ask("Page.navigate", url=page.as_uri().replace("%23", "#"))
        while not any(one.get("method") == "Page.loadEventFired" for one in self._events):
            self._events.append(self._next())
        return self._seen(page.as_uri())

    def _seen(self, url: str) -> Seen:
        seen = Seen()
        for one in self._events:
            params = one.get("params", {})
            match one.get("method"):
                case "Network.requestWillBeSent":
                    if params["request"]["url"] != url.partition("%23")[0]:
                        seen.requests.append(params["request"]["url"])
                case "Runtime.consoleAPICalled":
                    seen.console.append(str(params["args"]))
                case "Runtime.exceptionThrown":
                    seen.console.append(str(params["exceptionDetails"]))
                case "Log.entryAdded":
                    seen.console.append(params["entry"]["text"])
        return seen

    def run(self, expression: str) -> Any:
        """What JavaScript makes of the page; promises are awaited."""
        got = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(str(got["exceptionDetails"])[:1000])
        return got["result"].get("value")


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile in this directory. Raises RuntimeError where there is none."""
    program = found()
    if program is None:
        raise RuntimeError("no Chromium")
    theirs_in, to = os.pipe()
    from_, theirs_out = os.pipe()
    command = [program, *QUIET, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", _AT_3_AND_4, str(theirs_in), str(theirs_out), *command],
        pass_fds=(theirs_in, theirs_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        one = Browser(to, from_)
        yield one
        one._session = ""
        one.ask("Browser.close")
        process.wait(timeout=PATIENCE)
    finally:
        os.close(to)
        os.close(from_)
        with suppress(ProcessLookupError):  # its helpers are in the same group
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
