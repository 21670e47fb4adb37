"""Runs the commands of a step. Each is the leader of a process group, so that none of its processes outlives the run.
"""

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

_groups = set()
_lock = threading.Lock()
_stopping = False


@dataclass
class Ended:
    status: int  # As in a shell: 128 and the signal's number, or 124 after a timeout.
    cpu_seconds: float


class Stopped(Exception):
    """The run was asked to end, so no command starts any more."""


def run(command, log, timeout=None, env=None):
    """Runs a command to its end. `log` is an open file for its output. Any thread may call it."""
    with _lock:
        if _stopping:
            raise Stopped
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, **(env or {})})
        _groups.add(process.pid)
    timed_out = threading.Event()

    def end():
        timed_out.set()
        _end_group(process.pid)

    timer = threading.Timer(timeout, end) if timeout else None
    if timer:
        timer.start()
    _, status, usage = os.wait4(process.pid, 0)  # Unlike Popen.wait, it returns the processor time.
    process.returncode = os.waitstatus_to_exitcode(status)
    if timer:
        timer.cancel()
    _end_group(process.pid)
    with _lock:
        _groups.discard(process.pid)
    code = process.returncode
    if timed_out.is_set():
        code = 124
    return Ended(code if code >= 0 else 128 - code, usage.ru_utime + usage.ru_stime)


def stop_all():
    """Ends every running command, and lets no other start."""
    global _stopping
    with _lock:
        _stopping = True
        groups = list(_groups)
    for group in groups:
        _end_group(group)


def _end_group(group):
    """Asks the remaining processes of a group to end. Kills them after 10 seconds."""
    for number, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, 2)):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                os.killpg(group, number)
            except (ProcessLookupError, PermissionError):
                return
            time.sleep(0.05)
            number = 0 if number == signal.SIGTERM else number
