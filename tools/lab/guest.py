"""A guest: an emulated machine with an NVDIMM, its orders and its reports."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import dataclasses
import ipaddress
import os
import pathlib
import select
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from lab.common import LAB, LabError, say
from lab.disk import Disk
from lab.kernel import cpio, initrd_content
from lab.memory import Nvdimm, memory_file, persistent_region

if TYPE_CHECKING:
    from lab.runs import Lab

SERVER_ADDRESS = "10.9.0.1"
SERVER_ADDRESS6 = "fd09::1"
CLIENT_ADDRESS = "10.9.0.2"
CLIENT_ADDRESS6 = "fd09::2"
RDMA_DEVICE = "rxe0"
DAX_DIRECTORY = "/mnt/dax"
DISK_DIRECTORY = "/mnt/disk"
NVME_SLOT = 0x1E  # of the PCI bus
PMR = f"pmr:/sys/bus/pci/devices/0000:00:{NVME_SLOT:02x}.0/resource4"
STOP_SECONDS = 20
REQUEST_SECONDS = 2  # A power cut waits at most so long for a request to the disk.
CONSOLE_LINES = 60
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None)


@dataclasses.dataclass(frozen=True)
class Options:
    memory: int
    cpus: int
    nvdimm: int | None
    nvdimm_file: pathlib.Path | None
    dax: str
    disk: int | None
    disk_file: pathlib.Path | None
    disk_seed: int
    nvme: bool
    pmr: int | None
    front: int | None
    out: pathlib.Path | None
    environment: list[str]
    timeout: float
    mtu: int
    idle_poll: bool
    verbose: bool


@dataclasses.dataclass(frozen=True)
class Event:
    """A report of a guest's thread to the main thread: ready, started, said, exit, fail, end (of a stream), unread,
    dead."""

    guest: Guest
    start: int
    kind: str
    value: str = ""


class Output:
    """One of the tool's output streams. With a prefix it writes whole lines, and watches them for a text."""

    locks = {1: threading.Lock(), 2: threading.Lock()}

    def __init__(self, descriptor: int, prefix: bytes = b"", hear: Callable[[bytes], None] | None = None) -> None:
        self.descriptor = descriptor
        self.prefix = prefix
        self.hear = hear
        self.partial = b""

    def write(self, data: bytes) -> None:
        if self.prefix:
            *lines, self.partial = (self.partial + data).split(b"\n")
            for line in lines if self.hear else []:
                self.hear(line)
            data = b"".join(self.prefix + line + b"\n" for line in lines)
        self.write_as_is(data)

    def finish(self) -> None:
        if self.partial:
            self.write(b"\n")

    def write_as_is(self, data: bytes) -> None:
        with Output.locks[self.descriptor]:
            while data:
                data = data[os.write(self.descriptor, data) :]


class Guest:
    """An emulated machine. After a kill it can start again, with the same memory that needs no power, and network."""

    END_MARK = b"\0\xff\0" + os.urandom(16).replace(b"\0", b"\xff")

    def __init__(
        self,
        lab: Lab,
        role: str,
        command: list[str],
        nvdimm: Nvdimm,
        wire: socket.socket | None = None,
        awaited: str | None = None,
        disk: Disk | None = None,
    ) -> None:
        self.kernel = lab.kernel
        self.options = lab.options
        self.events = lab.events
        self.role = role
        self.command = command
        self.nvdimm = nvdimm
        self.disk = disk
        # The client of a pair has neither an NVMe disk nor a second NVDIMM.
        self.pmr = persistent_region(lab.options.pmr) if lab.options.pmr and role != "client" else None
        self.front = Nvdimm(None, lab.options.front) if lab.options.front and role != "client" else None
        self.wire = wire
        prefix = b"" if role == "single" else role.encode() + b"| "
        self.outputs = {"stdout": Output(1, prefix, self._hear), "stderr": Output(2, prefix, self._hear)}
        self.awaited = None if awaited is None else os.fsencode(awaited)
        self.said = False  # The awaited text has come.
        self.console: collections.deque[bytes] = collections.deque(maxlen=CONSOLE_LINES)
        self.process: subprocess.Popen[bytes] | None = None
        self.threads: list[threading.Thread] = []
        self.control: socket.socket | None = None
        self.starts = 0
        self.boot = 0
        self.power_on = 0.0
        self.ready = False
        self.started = False
        self.status: int | None = None
        self.streams_ended = 0
        self.off = False  # Its power was cut.
        self.drain: threading.Thread | None = None
        self.drain_stop = threading.Event()

    @property
    def finished(self) -> bool:
        return self.status is not None and self.streams_ended == 2

    @property
    def has_nvme(self) -> bool:
        return self.pmr is not None or (self.disk is not None and self.options.nvme)

    # Starting.

    def start(self, again: bool = False) -> None:
        """Powers the guest on. `again`: it did not come up, so this counts as the same boot."""
        self.starts += 1
        self.boot += not again
        self.console.clear()
        if self.drain:
            self.drain_stop.set()
            self.drain.join()
        ours: dict[str, socket.socket] = {}
        theirs: dict[str, socket.socket] = {}
        for port in ("control", "stdout", "stderr"):
            ours[port], theirs[port] = socket.socketpair()
        initrd = memory_file(initrd_content(self.kernel) + cpio(self._settings()))
        inherited = [initrd, self.nvdimm.descriptor, *(end.fileno() for end in theirs.values())]
        if self.wire:
            inherited.append(self.wire.fileno())
        disk = self.disk.connect() if self.disk else None
        if disk:
            inherited.append(disk.fileno())
        if self.pmr is not None:
            inherited.append(self.pmr)
        if self.front:
            inherited.append(self.front.descriptor)
        parent = os.getpid()

        def die_with_parent() -> None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        self.power_on = time.monotonic()
        self.process = subprocess.Popen(
            self._emulator(initrd, theirs, disk),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=inherited,
            preexec_fn=die_with_parent,
            start_new_session=True,
        )
        for end in theirs.values():
            end.close()
        if disk:
            disk.close()
        os.close(initrd)
        self.control = ours["control"]
        self.ready = self.started = self.off = False
        self.status = None
        self.streams_ended = 0
        self.threads = [
            self._thread(self._read_control, ours["control"]),
            self._thread(self._read_console, self.process),
            self._thread(self._read_stream, "stdout", ours["stdout"]),
            self._thread(self._read_stream, "stderr", ours["stderr"]),
        ]

    def _thread(self, function: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=function, args=(self.starts, *arguments), daemon=True)
        thread.start()
        return thread

    def _settings(self) -> dict[str, tuple[int, bytes]]:
        """Returns the guest's part of the initrd."""
        options = self.options
        client = self.role == "client"
        address, address6 = (CLIENT_ADDRESS, CLIENT_ADDRESS6) if client else (SERVER_ADDRESS, SERVER_ADDRESS6)
        nvdimm = self.nvdimm.format()
        if nvdimm not in ("empty", options.dax):
            raise LabError(f"{self.nvdimm.name} was formatted with --dax {nvdimm}, not {options.dax}: give that, or another file")
        settings = {
            "role": self.role,
            "directory": os.getcwd(),
            "modules": self.kernel.modules,
            "out": options.out or "",
            "dax": options.dax,
            "dax_directory": DAX_DIRECTORY,
            "nvdimm": nvdimm,
            "front": self.front.format() if self.front else "",
            "disk_directory": DISK_DIRECTORY if self.disk else "",
            "nvme": "yes" if self.has_nvme else "",
            "device": RDMA_DEVICE,
            "address": address,
            "address6": address6,
            "gid": ipaddress.IPv6Address(f"::ffff:{address}").exploded,
            "gid6": ipaddress.IPv6Address(address6).exploded,
            "mtu": options.mtu,
            "stop_seconds": STOP_SECONDS,
            "end_mark": "".join(f"\\x{byte:02x}" for byte in self.END_MARK),
        }
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "ERDA_LAB": "1",
            "ERDA_LAB_ROLE": self.role,
            "ERDA_LAB_BOOT": self.boot,
            "ERDA_LAB_DEVICE": RDMA_DEVICE,
            "ERDA_LAB_SERVER": SERVER_ADDRESS,
            "ERDA_LAB_SERVER6": SERVER_ADDRESS6,
            "ERDA_LAB_ADDRESS": address,
        }
        if options.dax == "fsdax":
            environment["ERDA_LAB_DAX_DIR"] = DAX_DIRECTORY
        if self.disk:
            environment["ERDA_LAB_DISK_DIR"] = DISK_DIRECTORY
        if self.pmr is not None:
            environment["ERDA_LAB_PMR"] = PMR
        if options.out:
            environment["ERDA_LAB_OUT"] = options.out
        assignments = [f"{name}={value}" for name, value in environment.items()] + options.environment
        lines = [f"{name}={shlex.quote(str(value))}" for name, value in settings.items()]
        command = [f"environment=({shlex.join(assignments)})", f"command=({shlex.join(self.command)})"]
        return {
            "lab/settings": (0o644, os.fsencode("\n".join(lines) + "\n")),
            "lab/command": (0o644, os.fsencode("\n".join(command) + "\n")),
            "lab/agent": (0o755, (LAB / "agent").read_bytes()),
        }

    def _emulator(self, initrd: int, ports: dict[str, socket.socket], disk: socket.socket | None) -> list[str]:
        options = self.options
        parameters = (
            "console=ttyS0 quiet panic=-1 oops=panic mitigations=off no_timer_check tsc=reliable clocksource=tsc "
            "random.trust_cpu=on" + (" idle=poll" if options.idle_poll else "")
            # A program can map memory of a PCI device that a driver uses, too.
            + (" iomem=relaxed" if self.pmr is not None else "")
        )
        # The first one gets the lower address, by which the agent knows it.
        nvdimms = {"nvdimm": self.nvdimm} | ({"front": self.front} if self.front else {})
        maximum = options.memory + sum(nvdimm.size for nvdimm in nvdimms.values()) + (1 << 30)
        command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        command += ["-machine", "q35,nvdimm=on", "-accel", "tcg,thread=multi", "-smp", str(options.cpus)]
        # Without erms, the kernel, and so Soft-RoCE, copies eight bytes at a time. With erms the emulator copies byte
        # by byte, and a Read could find half of a word. No device does that, and RDMA programs rely on it. Without
        # sse4.2, CRC32C is computed by a table. The emulator computes the crc32 instruction bit by bit, in 60 ns
        # instead of one. Checksums would then weigh twenty times their weight on a processor.
        command += ["-cpu", "max,-erms,-fsrm,-sse4.2"]
        command += ["-m", f"{options.memory >> 20}M,slots={len(nvdimms)},maxmem={maximum >> 20}M"]
        command += ["-kernel", str(self.kernel.image), "-initrd", f"/proc/self/fd/{initrd}", "-append", parameters]
        command += ["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
        for name, nvdimm in nvdimms.items():
            memory = f"memory-backend-file,id={name},share=on,mem-path=/proc/self/fd/{nvdimm.descriptor}"
            command += ["-object", f"{memory},size={nvdimm.size}", "-device", f"nvdimm,memdev={name}"]
        if disk:
            command += ["-blockdev", f"driver=nbd,node-name=disk,server.type=fd,server.str={disk.fileno()},cache.direct=on"]
            if not self.has_nvme:
                command += ["-device", "virtio-blk-pci,drive=disk,write-cache=on"]
        if self.has_nvme:
            nvme = f"nvme,serial=lab,addr={NVME_SLOT:#x}" + (",drive=disk,write-cache=on" if disk else "")
            if self.pmr is not None:
                memory = f"memory-backend-file,id=pmr,share=on,mem-path=/proc/self/fd/{self.pmr}"
                command += ["-object", f"{memory},size={self.options.pmr}"]
                nvme += ",pmrdev=pmr"
            command += ["-device", nvme]
        command += self._share("root", pathlib.Path("/"), "readonly=on,")
        if options.out:
            command += self._share("out", options.out)
        command += ["-device", "virtio-serial-pci"]
        for name, end in ports.items():
            command += ["-chardev", f"socket,id={name},fd={end.fileno()}"]
            command += ["-device", f"virtserialport,chardev={name},name=erda.{name}"]
        if self.wire:
            mac = "52:54:00:09:00:02" if self.role == "client" else "52:54:00:09:00:01"
            command += ["-netdev", f"dgram,id=wire,local.type=fd,local.str={self.wire.fileno()}"]
            command += ["-device", f"virtio-net-pci,netdev=wire,mac={mac},host_mtu={options.mtu},romfile="]
        else:
            command += ["-nic", "none"]
        return command

    @staticmethod
    def _share(tag: str, directory: pathlib.Path, access: str = "") -> list[str]:
        path = str(directory).replace(",", ",,")
        return [
            "-fsdev",
            f"local,id={tag},path={path},{access}security_model=none,multidevs=remap",
            "-device",
            f"virtio-9p-pci,fsdev={tag},mount_tag={tag}",
        ]

    # Output of the guest. Each of these functions is a thread.

    def _tell(self, start: int, kind: str, value: str = "") -> None:
        self.events.put(Event(self, start, kind, value))

    def _read_control(self, start: int, port: socket.socket) -> None:
        with contextlib.suppress(OSError), port, port.makefile(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                kind, _, value = line.strip().partition(" ")
                self._tell(start, kind, value)

    def _read_console(self, start: int, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout
        echoed = self.options.verbose
        for line in process.stdout:
            line = line.rstrip(b"\r\n") + b"\n"
            self.console.append(line)
            if echoed:
                try:
                    Output(2).write_as_is(f"{self.role} console| ".encode() + line)
                except BrokenPipeError:
                    echoed = False  # Reads on: an emulator stops if no process reads its console.
        process.wait()
        self._tell(start, "dead")

    def _read_stream(self, start: int, name: str, port: socket.socket) -> None:
        output = self.outputs[name]
        held = b""
        try:
            with port:
                while data := port.recv(1 << 16):
                    held += data
                    if held.endswith(self.END_MARK):
                        output.write(held.removesuffix(self.END_MARK))
                        output.finish()
                        self._tell(start, "end")
                        return
                    keep = max(n for n in range(len(self.END_MARK)) if held.endswith(self.END_MARK[:n]))
                    output.write(held[: len(held) - keep])
                    held = held[len(held) - keep :]
        except BrokenPipeError:
            self._tell(start, "unread")
        except OSError:
            pass  # Its emulator was killed.
        with contextlib.suppress(BrokenPipeError):
            output.write(held)
            output.finish()

    def _hear(self, line: bytes) -> None:
        if self.awaited is not None and self.awaited in line:
            self._tell(self.starts, "said")

    # Ending.

    def request(self, text: str) -> None:
        assert self.control
        with contextlib.suppress(OSError):
            self.control.sendall(text.encode() + b"\n")

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
            for thread in self.threads:
                thread.join(timeout=5)

    def cut_power(self) -> None:
        if self.disk:
            self.disk.await_cut(REQUEST_SECONDS)
        self.off = True
        self.kill()
        if self.disk:
            say(f"the {self.role}'s power was cut; its disk: {self.disk.cut_power()}")
        if self.wire:
            # Packets of the other guest are lost now. They must not wait in the wire for the next start.
            self.drain_stop.clear()
            self.drain = threading.Thread(target=self._drain, args=(self.wire,), daemon=True)
            self.drain.start()

    def _drain(self, wire: socket.socket) -> None:
        while not self.drain_stop.is_set():
            if select.select([wire], [], [], 0.1)[0]:
                with contextlib.suppress(BlockingIOError):
                    wire.recv(1 << 17, socket.MSG_DONTWAIT)

    def show_console(self) -> None:
        say(f"the end of the {self.role} guest's console:")
        Output(2).write_as_is(b"".join(self.console))
