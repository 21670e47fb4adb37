"""Programs that run or serve. None outlives this process, however it ends."""

from __future__ import annotations

import ctypes
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
START_SECONDS = 30
STOP_SECONDS = 20
RUN_SECONDS = 300  # At most, for one command.

_libc = ctypes.CDLL(None)


class ToolError(Exception):
    """An error that is reported to the user in one line."""


def ending_with_this(number: int = signal.SIGKILL) -> Callable[[], None]:
    """For preexec_fn: the child gets the signal when this process ends."""
    parent = os.getpid()

    def prepare() -> None:
        _libc.prctl(1, number)  # PR_SET_PDEATHSIG.
        if os.getppid() != parent:
            os._exit(1)

    return prepare


class Server:
    """A server in a separate folder, which must be ready in time. A terminal's Ctrl-C does not reach it: this tool
    stops it."""

    def __init__(
        self, name: str, command: Sequence[str], address: str, folder: pathlib.Path, ready: Callable[[Server], bool]
    ) -> None:
        self.command = list(command)
        self.address = address
        self._name = name
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder,
                start_new_session=True, preexec_fn=ending_with_this(),
            )
        try:
            self._wait_until(ready)
        except BaseException:
            self._kill()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def said(self, text: str) -> bool:
        return text in self._output()

    def require_running(self) -> None:
        if self._process.poll() is not None:
            raise ToolError(f"{self._name} ended with {self._process.returncode}: {self._last_line()}")

    def stop(self) -> None:
        if self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()

    def _wait_until(self, ready: Callable[[Server], bool]) -> None:
        end = time.monotonic() + START_SECONDS
        while not ready(self):
            self.require_running()
            if time.monotonic() > end:
                raise ToolError(f"{self._name} was not ready in {START_SECONDS} s: {self._last_line()}")
            time.sleep(0.01)

    def _output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _last_line(self) -> str:
        return next((line.strip() for line in reversed(self._output().split("\n")) if line.strip()), "it said nothing")

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()


def execute(
    command: Sequence[str], server: Server | None = None, seconds: float = RUN_SECONDS, environment: Mapping[str, str] | None = None
) -> None:
    """Runs a command to its end. Reports a failure with the last line of the command, or of the server if that is gone.
    """
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
            env={**os.environ, **(environment or {})}, preexec_fn=ending_with_this(),
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"this command did not end in {seconds:g} s: {shlex.join(command)}") from error
    if result.returncode != 0:
        if server:
            server.require_running()
        said = result.stderr.strip().split("\n")[-1]
        raise ToolError(f"{said or 'exit code ' + str(result.returncode)} ({shlex.join(command)})")


def shown(command: Sequence[str], build: pathlib.Path, folder: pathlib.Path) -> str:
    """Returns the command for a reader who wants to repeat it, with paths from the source folder. `folder` is
    temporary."""
    text = shlex.join(command).replace(str(folder), "DIR").replace(f"{build}/", "build/").replace(f"{ROOT}/", "")
    return re.sub(r"(?<=--server-pid )\d+", "PID", text)


def require_built(build: pathlib.Path, names: Sequence[str]) -> None:
    for name in names:
        if not os.access(build / "bin" / name, os.X_OK):
            raise ToolError(
                f"{build}/bin/{name} not found; build it (cmake --preset release && cmake --build --preset release), or name "
                "the folder of another build: --build"
            )


def available_memory() -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
