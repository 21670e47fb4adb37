"""Runs one guest, or two on one wire: from power-on to the exit code."""

from __future__ import annotations

import contextlib
import dataclasses
import queue
import signal
import socket
import time
from collections.abc import Callable

from lab.common import EXIT_LAB, Interrupted, say
from lab.disk import Disk
from lab.guest import Event, Guest, Options
from lab.kernel import Kernel
from lab.memory import Nvdimm

BOOT_SECONDS = 90  # On a very busy host an emulated machine can miss its timer interrupts, and never come up.
SAY_SECONDS = 9


class LabTimeout(Exception):
    pass


class GuestFailed(Exception):
    def __init__(self, guest: Guest, reason: str) -> None:
        super().__init__(f"the {guest.role} guest failed: {reason}")
        self.guest = guest


class Lab:
    """The guests of one invocation, and their events. Leaving it kills them."""

    def __init__(self, options: Options, kernel: Kernel) -> None:
        self.options = options
        self.kernel = kernel
        self.events: queue.Queue[Event] = queue.Queue()
        self.guests: list[Guest] = []
        self.deadline = float("inf")

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for guest in self.guests:
            guest.kill()

    def power_on(self, guest: Guest) -> None:
        if not self.guests and self.options.timeout:
            self.deadline = time.monotonic() + self.options.timeout
        if guest not in self.guests:
            self.guests.append(guest)
        guest.start()

    def wait(self, condition: Callable[[], bool], seconds: float = float("inf")) -> bool:
        """Waits until the condition holds, or this time is over. Returns whether the condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            now = time.monotonic()
            if now >= self.deadline:
                raise LabTimeout
            if now >= end:
                return False
            with contextlib.suppress(queue.Empty):
                # A bound, since no wait takes an infinite float.
                self._handle(self.events.get(timeout=min(end - now, self.deadline - now, 3600)))
        return True

    def boot(self, guest: Guest, unless: Callable[[], bool] = lambda: False) -> bool:
        """Waits until a guest that was powered on is ready, or until `unless` holds."""
        while not self._is_up(guest, unless):
            say(f"the {guest.role} guest is not up after {BOOT_SECONDS} s: powering it off and on")
            guest.kill()
            guest.start(again=True)
        return guest.ready

    def _is_up(self, guest: Guest, unless: Callable[[], bool]) -> bool:
        for seconds in range(0, BOOT_SECONDS, SAY_SECONDS):
            if self.wait(lambda: guest.ready or unless(), min(SAY_SECONDS, BOOT_SECONDS - seconds)):
                return True
            say(f"the {guest.role} guest boots, for {seconds + SAY_SECONDS} s by now")
        return False

    def start_command(self, guest: Guest) -> None:
        guest.request("start")
        self.wait(lambda: guest.started)
        if self.options.verbose:
            say(f"{guest.role}: the command started {time.monotonic() - guest.power_on:.1f} s after power-on")

    def _handle(self, event: Event) -> None:
        guest = event.guest
        if event.start != guest.starts:
            return  # Reported before it was powered off.
        match event.kind:
            case "ready":
                guest.ready = True
            case "started":
                guest.started = True
            case "said":
                guest.said = True
            case "exit":
                guest.status = int(event.value)
            case "end":
                guest.streams_ended += 1
            case "unread":
                raise Interrupted(signal.SIGPIPE)
            case "fail":
                raise GuestFailed(guest, event.value)
            case "dead" if not guest.finished and not guest.off:
                raise GuestFailed(guest, "its emulator ended before its command")


def disk_of(options: Options) -> Disk | None:
    return Disk(options.disk, options.disk_seed, options.disk_file) if options.disk else None


def run(lab: Lab, command: list[str]) -> int:
    options = lab.options
    guest = Guest(lab, "single", command, Nvdimm(options.nvdimm_file, options.nvdimm), disk=disk_of(options))
    lab.power_on(guest)
    lab.boot(guest)
    lab.start_command(guest)
    lab.wait(lambda: guest.finished)
    assert guest.status is not None
    return guest.status


@dataclasses.dataclass(frozen=True)
class Cut:
    role: str
    seconds: float
    restart: bool
    linger: float
    # The seconds count from a line with this text. Without it, they count from the start of the client's command.
    after: str | None
    count: int = 1  # The number of cuts, each after a separate line.
    disk_lies: bool = False  # From such a line on, the server's disk flushes nothing.

    def __str__(self) -> str:
        return f"{self.seconds:g} s after " + ("it began" if self.after is None else f"a line with '{self.after}'")


def pair(lab: Lab, server_command: str, client_command: str, cut: Cut | None) -> int:
    options = lab.options
    # The wire: each guest has one end of it. The tool keeps both ends, so that the wire outlives a guest.
    server_end, client_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    bash = ["/bin/bash", "-c"]
    nvdimm = Nvdimm(options.nvdimm_file, options.nvdimm)
    awaited = cut.after if cut else None
    server = Guest(lab, "server", [*bash, server_command], nvdimm, server_end, awaited, disk_of(options))
    client = Guest(lab, "client", [*bash, client_command], Nvdimm(None, options.nvdimm), client_end, awaited)
    lab.power_on(server)
    lab.power_on(client)
    lab.boot(server)
    lab.boot(client)
    lab.start_command(server)
    lab.start_command(client)

    missed = False
    if cut:
        victim = server if cut.role == "server" else client
        for _ in range(cut.count):
            lab.wait(lambda: awaited is None or server.said or client.said or client.finished)
            if server.disk:
                server.disk.lies = cut.disk_lies
            missed = lab.wait(lambda: client.finished, cut.seconds)
            if missed:
                break
            server.said = client.said = False
            victim.cut_power()
            if cut.restart:
                lab.power_on(victim)
                if lab.boot(victim, unless=lambda: client.finished):
                    lab.start_command(victim)
            elif victim is client:
                lab.wait(lambda: False, cut.linger)
    if not client.off:
        lab.wait(lambda: client.finished)

    if server.started and not server.finished and not server.off:
        server.request("stop")
        lab.wait(lambda: server.finished)
    if missed:
        say(f"the client's command ended, with {client.status}, before the power cut {cut}")
    server_status = 0 if server.status in (None, 128 + signal.SIGTERM) else server.status
    return client.status or server_status or (EXIT_LAB if missed else 0)
