"""Server, and the closing of all servers at the end of the process."""

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Callable, Literal, NamedTuple, Optional, Union

from ._activity import Activity
from ._arguments import POLLING, choice
from ._turns import Turns

if TYPE_CHECKING:
    from . import _native_server

_SHM_ACCESS = {"owner": 0, "group": 1, "everybody": 2}
_POOL_WRITES = {"nobody": 0, "same-user": 1, "everybody": 2}
_FLUSH = {"auto": 0, "server-flush": 1, "read-after-write": 2}


class ServerFabric(NamedTuple):
    """A fabric on which clients reach a server.

    scheme: "shm" or "verbs".
    device: the NIC's name; empty for shm.
    flush_method: "none", "server-flush" or "read-after-write".
    registered_in: the seconds that the registration of the pool there took.
    """

    scheme: str
    device: str
    flush_method: str
    registered_in: float


class Server:
    """A server in this process, with separate threads. As a context manager, it starts, and closes at the end.

    The constructor opens the pool or creates it, and recovers it if it was not closed cleanly. The server serves
    nothing before start().

    pool: "/dev/daxX.Y", a file, or "dram:", which is gone when the server is closed.
    listen: "shm:/path/to/socket" or "verbs://host:port", or several of them.
    size: of the pool in bytes, needed to create it.
    on_event: receives a line about each client that breaks the protocol, keeps others waiting, or is refused.
    on_damage: receives each key whose stored value is damaged, or None if the key is unknown.
    The other arguments are the options of erda-server. docs/operations.md has the defaults for which None stands.

    Threads of the server call on_event and on_damage, perhaps several at once, from start() until stop() has returned.
    Clients of such a thread wait meanwhile, so the callbacks should be short: put into a queue, for example. They may
    read the server's properties and counts. They must not start, reload, stop or close the server: that raises
    RuntimeError. Python prints an exception of a callback through sys.unraisablehook, and the server continues.
    """

    def __init__(self, pool: str, listen: Union[str, Iterable[str]], *, size: int = 0, shards: int = 0,
                 region_size: Optional[int] = None, segment_size: Optional[int] = None,
                 index_entries: Optional[int] = None, grow_to: Optional[int] = None,
                 max_clients: Optional[int] = None,
                 slots_per_client: Optional[int] = None, slot_bytes: Optional[int] = None,
                 reservations_per_client: Optional[int] = None, clients_per_token: Optional[int] = None,
                 requests_per_second: Optional[int] = None, connects_per_second: Optional[int] = None,
                 token_file: Optional[str] = None, shm_access: Literal["owner", "group", "everybody"] = "owner",
                 pool_writes: Literal["nobody", "same-user", "everybody"] = "same-user",
                 staging_bytes: Optional[int] = None,
                 flush: Literal["auto", "server-flush", "read-after-write"] = "auto",
                 scrub_rate: Optional[int] = None, polling: Literal["adaptive", "busy", "sleep"] = "adaptive",
                 spin_us: Optional[int] = None, nvm_write_latency_ns: Optional[int] = None,
                 sync_ms: Optional[int] = None, populate: bool = False,
                 journal: Optional[str] = None, journal_size: Optional[int] = None,
                 journal_interval_ms: Optional[int] = None, journal_memory: Optional[str] = None,
                 journal_front: Optional[str] = None, journal_on_tmpfs: bool = False, archive: Optional[str] = None,
                 on_event: Optional[Callable[[str], object]] = None,
                 on_damage: Optional[Callable[[Optional[bytes]], object]] = None) -> None:
        from . import _native_server  # Imported here, so that clients need no server library.

        for name, callback in (("on_event", on_event), ("on_damage", on_damage)):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} must be callable; {type(callback).__name__} is not")
        self._lock = Turns("server")
        # Reading the server's state does not take the lock: a callback may read it while a stop waits for the callback.
        self._idle = threading.Condition()
        self._asking = 0
        self._server: Optional[_native_server.Serving] = None
        self._started = False
        self._server = _native_server.Serving(
            pool, [listen] if isinstance(listen, str) else list(listen), on_event=on_event, on_damage=on_damage,
            texts={"token_file": token_file, "journal": journal, "journal_memory": journal_memory,
                   "journal_front": journal_front, "archive": archive},
            times={"spin_us": spin_us, "nvm_write_latency_ns": nvm_write_latency_ns, "sync_ms": sync_ms,
                   "journal_interval_ms": journal_interval_ms},
            numbers={"pool_size": size, "shards": shards, "region_size": region_size, "segment_size": segment_size,
                     "index_entries": index_entries, "grow_to": grow_to, "max_clients": max_clients,
                     "slots_per_client": slots_per_client,
                     "slot_bytes": slot_bytes, "reservations_per_client": reservations_per_client,
                     "clients_per_token": clients_per_token, "requests_per_second": requests_per_second,
                     "connects_per_second": connects_per_second, "staging_bytes": staging_bytes,
                     "scrub_rate": scrub_rate, "journal_size": journal_size},
            choices={"shm_access": choice(_SHM_ACCESS, shm_access, "shm_access"),
                     "pool_writes": choice(_POOL_WRITES, pool_writes, "pool_writes"),
                     "flush": choice(_FLUSH, flush, "flush"), "polling": choice(POLLING, polling, "polling"), "populate": int(bool(populate)),
                     "journal_on_tmpfs": int(bool(journal_on_tmpfs))})
        _servers.add(self)

    def start(self) -> None:
        """Begins to serve. A server can start only once."""
        self._refuse_in_callback()
        with self._lock:
            self._open().start()
            self._started = True

    def reload(self, *, clients_per_token: int = 0, requests_per_second: int = 0, connects_per_second: int = 0,
               token_file: Optional[str] = None) -> None:
        """Replaces all these limits, and reads the token file, which may be another one.

        Requests and connections that arrive after the return are under the new limits. Connections beyond a smaller
        clients_per_token stay. The server ends the connections of clients whose token is not in the file. An error
        changes nothing. token_file: None keeps the server's token file; a server that was opened without one takes
        none.
        """
        self._refuse_in_callback()
        with self._lock:
            self._open().reload(clients_per_token=clients_per_token, requests_per_second=requests_per_second,
                                connects_per_second=connects_per_second, token_file=token_file)

    def stop(self) -> None:
        """Closes every connection, and closes the pool cleanly. The server still reports its counts; it cannot start
        again."""
        self._refuse_in_callback()
        with self._lock:
            self._open().stop()

    def close(self) -> None:
        """Stops the server, and frees its memory. A second close does nothing; any other call then raises ValueError.

        In a child of a fork, leaves the server to the parent.
        """
        if self._lock.forked:
            self._server = None
            return
        self._refuse_in_callback()
        with self._lock:
            if self._server is not None:
                self._server.stop()  # Callbacks may read the server's state until the stop has returned.
                with self._idle:
                    server, self._server = self._server, None
                    self._idle.wait_for(lambda: self._asking == 0)
                server.close()

    def _refuse_in_callback(self) -> None:
        server = self._server
        if server is not None and server.is_telling:
            raise RuntimeError("a callback of a server cannot start, reload, stop or close it: the call would wait for the callback")

    def __enter__(self) -> Server:
        if not self._started:
            self.start()
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        server = getattr(self, "_server", None)
        if server is None:
            return
        if server.is_telling:  # The callback held the last reference.
            threading.Thread(target=server.close).start()
        else:
            self.close()

    def _open(self) -> _native_server.Serving:
        if self._server is None:
            raise ValueError("the server is closed")
        return self._server

    @contextlib.contextmanager
    def _asked(self) -> Iterator[_native_server.Serving]:
        """Yields the server, which stays open meanwhile."""
        self._lock.check()
        with self._idle:
            server = self._open()
            self._asking += 1
        try:
            yield server
        finally:
            with self._idle:
                self._asking -= 1
                self._idle.notify_all()

    @property
    def addresses(self) -> list[str]:
        """The addresses to which clients can connect."""
        with self._asked() as server:
            return server.addresses()

    @property
    def durability(self) -> str:
        """The kind of failure that the pool's medium survives: "power-safe", "process-safe" or "volatile"."""
        with self._asked() as server:
            return server.durability()

    def check_health(self) -> None:
        """Raises the error for which the server acknowledges no put any more: the disk of its journal has failed."""
        with self._asked() as server:
            server.check_health()

    @property
    def growth_limit(self) -> int:
        """The number of bytes that erda-pool resize can give the pool at most."""
        with self._asked() as server:
            return server.growth_limit()

    @property
    def fabrics(self) -> list[ServerFabric]:
        """The fabrics on which clients reach the server."""
        with self._asked() as server:
            return [ServerFabric(scheme, device, flush_method, registered_in_ns / 1e9)
                    for scheme, device, flush_method, registered_in_ns in server.fabrics()]

    def stats(self) -> dict[str, int]:
        """Returns the server's counts, by name."""
        with self._asked() as server:
            return server.stats()

    def activity(self) -> Activity:
        """Returns counts and durations of the server's work since it started, by kind and outcome."""
        with self._asked() as server:
            return server.activity()

    def recovery(self) -> Optional[dict[str, int]]:
        """Returns the findings of the opening of a pool that was not closed cleanly; None for other pools."""
        with self._asked() as server:
            return server.recovery()


_servers: weakref.WeakSet[Server] = weakref.WeakSet()


def _close_servers() -> None:
    """Closes all servers while their callbacks can still run. Skips those of a parent process: a child of a fork does
    not have their threads."""
    for server in list(_servers):
        if not server._lock.forked:
            server.close()


atexit.register(_close_servers)
