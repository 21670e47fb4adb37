"""The systems that are compared: how each starts, and its promise."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import socket

from measuring.programs import Server, ToolError, available_memory, require_built
from report import charts, machine

GIBIBYTE = 2**30
IN_MEMORY = ("tmpfs", "ramfs")  # File systems without a disk.
POOL_BYTES = 128 * 2**20  # At least.


@dataclasses.dataclass(frozen=True)
class System:
    name: str  # In JSON.
    title: str  # For people.
    colour: int
    promise: str  # The promise for an acknowledged put.
    server: str  # The key of the server that it needs; two systems may share one.
    ack: str | None = None  # Of Erda's clients.


ERDA = System(
    "erda", "Erda", 0, "Gone when the server ends. (Pool dram:, where kPlaced and kPersisted are the same.)", "erda",
    ack="persisted",
)
REDIS = System("redis", "Redis", 1, 'Gone when the server ends. (save "", appendonly no.)', "redis")
MEMCACHED = System("memcached", "memcached", 2, "Gone when the server ends.", "memcached")
MAIN = (ERDA, REDIS, MEMCACHED)

FILE_PLACED = System(
    "erda_file_placed",
    "Erda, file, kPlaced",
    4,
    "Survives the death of any process, also of the server. After a power cut nothing is promised. (A pool in a file of an "
    "ordinary file system.)",
    "erda_file",
    ack="placed",
)
FILE_PERSISTED = System(
    "erda_file_persisted",
    "Erda, file, kPersisted",
    0,
    "Survives the death of any process, also of the server. (On NVM it also survives a power cut at any instant. That costs "
    "a flush, which is not in this figure.)",
    "erda_file",
    ack="persisted",
)
EVERYSEC = System(
    "redis_everysec",
    "Redis, everysec",
    5,
    "Survives the death of the server, but for puts that came while an fsync was late. A power cut loses about the last "
    "second. (appendonly yes, appendfsync everysec.)",
    "redis_everysec",
)
ALWAYS = System(
    "redis_always",
    "Redis, always",
    1,
    "Survives a power cut: Redis syncs it to the disk before it answers. (appendonly yes, appendfsync always.)",
    "redis_always",
)
DURABLE = (FILE_PLACED, FILE_PERSISTED, EVERYSEC, ALWAYS)


def server_threads() -> int:
    """Returns the threads of each server that can have several: half of the processors, since the clients are on this
    machine, too."""
    return max(1, (os.cpu_count() or 1) // 2)


def start(key: str, build: pathlib.Path, folder: pathlib.Path, value_bytes: int) -> Server:
    """Starts a server that is large enough for this number of bytes in values, and waits until it serves."""
    if key.startswith("erda"):
        return _start_erda(key, build, folder, value_bytes)
    if key == "memcached":
        return _start_memcached(folder, value_bytes)
    return _start_redis(key, folder)


def pool_bytes(value_bytes: int) -> int:
    """Returns a size with room: a log cleans best with it, like memcached's slabs and Redis's allocator."""
    return max(POOL_BYTES, value_bytes * 4)


def _start_erda(key: str, build: pathlib.Path, folder: pathlib.Path, value_bytes: int) -> Server:
    path = folder / f"{key}.sock"
    pool = "dram:" if key == "erda" else str(folder / f"{key}.pool")
    journal = []
    if key == "erda_journal":
        journal = ["--journal", f"{folder / key},size={max(POOL_BYTES, pool_bytes(value_bytes) // 2)}"]
        if machine.file_system(folder) in IN_MEMORY:
            journal.append("--journal-on-tmpfs")
    return Server(
        key,
        [str(build / "bin" / "erda-server"), "--pool", pool, "--size", str(pool_bytes(value_bytes)), "--listen", f"shm:{path}",
         "--shards", str(server_threads()), *journal],
        f"shm:{path}",
        folder,
        lambda server: server.said("erda-server: ready"),
    )


def _start_redis(key: str, folder: pathlib.Path) -> Server:
    path = folder / f"{key}.sock"
    data = folder / key
    data.mkdir()
    append = {"redis": ["no"], "redis_everysec": ["yes", "--appendfsync", "everysec"],
              "redis_always": ["yes", "--appendfsync", "always"]}[key]
    return Server(
        key,
        ["redis-server", "--port", "0", "--unixsocket", str(path), "--dir", str(data), "--save", "", "--appendonly", *append,
         "--databases", "1", "--io-threads", str(server_threads())],
        f"redis:{path}",
        folder,
        lambda _: ask(path, b"PING\r\n").startswith(b"+PONG"),
    )


def require_always(server: Server) -> None:
    """Checks that this Redis syncs each put before it answers."""
    path = pathlib.Path(server.address.partition(":")[2])
    said = ask(path, b"CONFIG GET appendfsync\r\n", b"always\r\n")
    if not said.endswith(b"always\r\n"):
        raise ToolError(f"Redis has not the setting appendfsync always: {said!r}")


def _start_memcached(folder: pathlib.Path, value_bytes: int) -> Server:
    path = folder / "memcached.sock"
    # More than its slabs waste, so that nothing is evicted. It takes no unused memory.
    megabytes = 1024 + value_bytes * 3 // 2**20
    # Started by root, memcached would need another user, and would then not end with this tool.
    user = ["-u", "root"] if os.geteuid() == 0 else []
    return Server(
        "memcached",
        ["memcached", "-s", str(path), "-m", str(megabytes), "-t", str(server_threads()), *user],
        f"memcached:{path}",
        folder,
        lambda _: ask(path, b"version\r\n").startswith(b"VERSION"),
    )


def ask(path: pathlib.Path, question: bytes, last: bytes = b"\r\n") -> bytes:
    """Returns the answer of a server on a Unix socket, up to its last bytes. Returns nothing if no server listens."""
    answer = b""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        try:
            connection.connect(str(path))
            connection.sendall(question)
            while not answer.endswith(last):
                part = connection.recv(65536)
                if not part:
                    break
                answer += part
        except OSError:
            pass
    return answer


def evictions(server: Server) -> int:
    """Returns the number of values that memcached threw away."""
    path = pathlib.Path(server.address.partition(":")[2])
    for line in ask(path, b"stats\r\n", b"END\r\n").decode().splitlines():
        if line.startswith("STAT evictions "):
            return int(line.split()[2])
    raise ToolError("memcached does not say how many values it evicted")


def require_redis() -> None:
    if shutil.which("redis-server") is None:
        raise ToolError("redis-server not found; on Debian: apt-get install redis-server")


def require_programs(build: pathlib.Path) -> None:
    """Checks that all needed programs exist. Raises an error that says what to do."""
    missing = [name for name in ("redis-server", "memcached") if shutil.which(name) is None]
    if missing:
        raise ToolError(f"{' and '.join(missing)} not found; on Debian: apt-get install {' '.join(missing)}")
    require_built(build, ("erda-server", "erda-ycsb"))


def require_room(folder: pathlib.Path, value_bytes: int) -> None:
    """Checks the memory for all servers of one value size, and the disk for the pool and the append-only files."""
    memory = available_memory()
    pool = pool_bytes(value_bytes)
    needed = pool + 4 * value_bytes + GIBIBYTE
    if memory < needed:
        raise ToolError(f"this needs {charts.size(needed)} of memory, and {charts.size(memory)} are free; see --records")
    disk = shutil.disk_usage(folder).free
    needed = pool + 8 * value_bytes + 2 * GIBIBYTE
    if disk < needed:
        raise ToolError(f"{folder} needs {charts.size(needed)} of free space, and has {charts.size(disk)}; see --folder")
