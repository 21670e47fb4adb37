"""Erda, a key-value store for non-volatile memory: the client, and a server in this process.

    import erda

    with erda.Client("shm:/run/erda/socket") as client:
        client.put("greeting", "hello")
        client.get("greeting")           # b'hello'
        client.get("nothing")            # None
        client["greeting"]               # b'hello'; KeyError if absent, as in a dict

Keys and values are bytes. A str is taken as its UTF-8; what comes back is always bytes. A key is 1 to 1024 bytes.

What fails raises an erda.Error, one class for each kind; its message says what failed. A key without a value is no error
for get, get_versioned and multi_get, which say None; delete says False; client[key] and del client[key] raise KeyError.

    with erda.Server("dram:", "shm:/tmp/erda.sock", size=64 << 20), erda.Client("shm:/tmp/erda.sock") as client:
        ...

Threads: a Client may be used by several threads, which take turns: each call holds a lock until it ends. For calls at the
same time make a Client for each thread. A Server is started, stopped and closed in turns; what it says of itself, any
thread may ask at any time. Neither survives os.fork(): in a child each call raises InvalidArgumentError, and close() or
the end of the child leaves the parent's alone.

The module calls liberda-client.so.0 of the system, and liberda-server.so.0 from the first Server on; ERDA_CLIENT_LIBRARY
and ERDA_SERVER_LIBRARY name other files.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Callable, Literal, NamedTuple, Optional, Union

from . import _native
from ._activity import Activity, FabricStats, LatencyHistogram, OperationStats, Outcomes
from ._native import (ConflictError, CorruptionError, Error, InternalError, InvalidArgumentError, PermissionDeniedError,
                      ResourceExhaustedError, TimeoutError, UnavailableError)

if TYPE_CHECKING:
    from . import _native_server

__all__ = [
    "ABSENT", "Activity", "Client", "ConflictError", "CorruptionError", "Error", "FabricStats", "InternalError",
    "InvalidArgumentError", "LatencyHistogram", "OperationStats", "Outcomes", "PermissionDeniedError",
    "ResourceExhaustedError", "ScanPage", "ScannedKey", "Server", "ServerFabric", "TimeoutError", "UnavailableError",
    "Versioned",
]

Bytes = Union[bytes, bytearray, memoryview, str]

ABSENT = 0
"""As a version in a condition: the key is absent."""

_ACKS = {"placed": 0, "persisted": 1}
_PATHS = {"auto": 0, "reserve": 1, "inline": 2, "delegate": 3}
_POLLING = {"adaptive": 0, "busy": 1, "sleep": 2}
_SHM_ACCESS = {"owner": 0, "group": 1, "everybody": 2}
_POOL_WRITES = {"nobody": 0, "same-user": 1, "everybody": 2}
_FLUSH = {"auto": 0, "server-flush": 1, "read-after-write": 2}


class Versioned(NamedTuple):
    """A value, the version that its put gave to the key, and when it expires: seconds since 1970, or None."""

    value: bytes
    version: int
    expires: Optional[float]


class ScannedKey(NamedTuple):
    """As Versioned, with its key."""

    key: bytes
    value: bytes
    version: int
    expires: Optional[float]


class ScanPage(NamedTuple):
    """One page of a scan.

    keys: may be none, and more pages follow.
    next: the cursor behind it; None: it was the last one.
    part: how much of the scan is done with it, up to 1.0.
    damaged: keys that are stored there and cannot be told.
    """

    keys: list[ScannedKey]
    next: Optional[int]
    part: float
    damaged: int


class ServerFabric(NamedTuple):
    """A fabric that a server is reached on.

    scheme: "shm" or "verbs".
    device: the NIC's name; empty for shm.
    flush_method: "none", "server-flush" or "read-after-write".
    registered_in: the seconds that it took to register the pool there.
    """

    scheme: str
    device: str
    flush_method: str
    registered_in: float


def _bytes(data: Bytes) -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"a key or value must be bytes or str, not {type(data).__name__}")


def _choice(choices: dict[str, int], name: str, what: str) -> int:
    if name not in choices:
        raise InvalidArgumentError(f"{what} must be one of {', '.join(choices)}, not {name!r}")
    return choices[name]


def _milliseconds(seconds: float, what: str) -> int:
    try:
        return round(seconds * 1000)
    except (OverflowError, ValueError):  # an infinity, or no number
        raise InvalidArgumentError(f"{what} must be a finite number of seconds, not {seconds}") from None


class _Turns:
    """The lock of a thing that belongs to the process that made it. A child of a fork cannot wait for it: a thread that
    the child does not have may hold it for ever."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def forked(self) -> bool:
        return os.getpid() != self._process

    def locked(self) -> bool:
        return self._lock.locked()

    def check(self) -> None:
        if self.forked:
            raise InvalidArgumentError(f"this {self._what} was made before a fork, and belongs to the parent process: "
                                       "make another one in the child, or let multiprocessing spawn")

    def __enter__(self) -> None:
        self.check()
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


def _expires(milliseconds: int) -> Optional[float]:
    return milliseconds / 1000 if milliseconds else None


class Client:
    """A connection to a server: a context manager, that closes it.

    address: "shm:/path/to/socket" or "verbs://host:port".
    ack: a put counts as done when its value is "placed" in the server's memory, or "persisted".
    put_path: how a put travels.
    polling: how a call waits.
    queue_depth: operations in flight of one multi_get, 1 to 256.
    cache_entries: keys whose places are remembered.
    timeout: in seconds, for connecting and for each operation.
    token, token_file: what the server asks for, or a file with it.
    """

    def __init__(self, address: str, *, ack: Literal["placed", "persisted"] = "persisted",
                 put_path: Literal["auto", "reserve", "inline", "delegate"] = "auto",
                 polling: Literal["adaptive", "busy", "sleep"] = "adaptive", queue_depth: int = 64,
                 cache_entries: int = 65536, timeout: float = 5.0, token: Optional[str] = None,
                 token_file: Optional[str] = None) -> None:
        self._lock = _Turns("client")
        self._client: Optional[_native.Connection] = None
        self._client = _native.Connection(
            address, ack=_choice(_ACKS, ack, "ack"), put_path=_choice(_PATHS, put_path, "put_path"),
            polling=_choice(_POLLING, polling, "polling"), queue_depth=queue_depth, cache_entries=cache_entries,
            timeout_ms=_milliseconds(timeout, "timeout"), token=token, token_file=token_file)

    def close(self) -> None:
        """Ends the connection. Closing twice does nothing; any other call then raises ValueError.

        In a child of a fork it leaves the connection to the parent.
        """
        if self._lock.forked:
            self._client = None
            return
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_client", None) is not None:
            self.close()

    def _open(self) -> _native.Connection:
        if self._client is None:
            raise ValueError("the client is closed")
        return self._client

    def get(self, key: Bytes) -> Optional[bytes]:
        """The value, or None if the key has none."""
        found = self.get_versioned(key)
        return None if found is None else found.value

    def get_versioned(self, key: Bytes) -> Optional[Versioned]:
        """The value with its version and deadline, or None."""
        with self._lock:
            found = self._open().get(_bytes(key))
        return None if found is None else Versioned(found[0], found[1], _expires(found[2]))

    def multi_get(self, keys: Iterable[Bytes]) -> list[Optional[bytes]]:
        """One value for each key, in their order; None for those without. Raises the first error, if there is one."""
        return [None if found is None else found.value for found in self.multi_get_versioned(keys)]

    def multi_get_versioned(self, keys: Iterable[Bytes]) -> list[Optional[Versioned]]:
        """As multi_get, with versions and deadlines."""
        wanted = [_bytes(key) for key in keys]
        with self._lock:
            all_found = self._open().multi_get(wanted)
        return [None if found is None else Versioned(found[0], found[1], _expires(found[2])) for found in all_found]

    def put(self, key: Bytes, value: Bytes, *, ttl: Optional[float] = None) -> int:
        """Stores the value, for good or for `ttl` seconds. Returns its version."""
        return self._put(key, value, None, ttl)

    def put_if(self, key: Bytes, value: Bytes, version: int, *, ttl: Optional[float] = None) -> int:
        """As put, if the key has this version (ABSENT: no value) just before it. Else ConflictError; nothing changes."""
        return self._put(key, value, version, ttl)

    def _put(self, key: Bytes, value: Bytes, version: Optional[int], ttl: Optional[float]) -> int:
        milliseconds = None if ttl is None else _milliseconds(ttl, "a time to live")
        if milliseconds is not None and milliseconds < 1:
            raise InvalidArgumentError(f"a time to live must be at least 0.001 s, not {ttl}")
        with self._lock:
            return self._open().put(_bytes(key), _bytes(value), version, milliseconds or 0)

    def delete(self, key: Bytes) -> bool:
        """False if the key had no value."""
        with self._lock:
            return self._open().delete(_bytes(key), None)

    def delete_if(self, key: Bytes, version: int) -> None:
        """Deletes if the key has this version just before it. Else ConflictError, also if it is absent."""
        with self._lock:
            self._open().delete(_bytes(key), version)

    def incr(self, key: Bytes, delta: int = 1) -> int:
        """Adds to a value of 8 bytes, a signed number in little-endian order, in one step; absent counts as 0. The sum."""
        with self._lock:
            return self._open().increment(_bytes(key), delta)

    def ttl(self, key: Bytes) -> Optional[float]:
        """The seconds until the value expires, by this machine's clock; None if it stays. KeyError if absent."""
        found = self.get_versioned(key)
        if found is None:
            raise KeyError(key)
        return None if found.expires is None else max(0.0, found.expires - _native.now())

    def scan(self, *, values: bool = True) -> Iterator[ScannedKey]:
        """All keys, in no order. Other calls may come in between; docs/protocol.md says what a scan then tells.

        values: else the keys alone, and their values are b"".
        It says nothing of keys that are damaged; scan_page does.
        """
        cursor: Optional[int] = 0
        while cursor is not None:
            page = self.scan_page(cursor, values=values)
            yield from page.keys
            cursor = page.next

    def scan_page(self, cursor: int = 0, *, keys: int = 1000, size: int = 4 << 20, values: bool = True) -> ScanPage:
        """The next keys of a scan, for who goes on later or elsewhere: a cursor is good for as long as the pool is.

        cursor: 0, or `next` of the page before.
        keys, size: it ends behind about so many keys, or so many bytes of what it reads, but not before its first.
        values: as of scan.
        """
        with self._lock:
            found, following, part, damaged = self._open().scan(cursor, keys, size, values)
        told = [ScannedKey(key, value, version, _expires(expires)) for key, value, version, expires in found]
        return ScanPage(told, following, part, damaged)

    def clean(self) -> None:
        """Asks the server to clean its log; returns when it has begun."""
        with self._lock:
            self._open().clean()

    def stats(self) -> dict[str, int]:
        """This client's counts, by name, since it connected."""
        with self._lock:
            return self._open().stats()

    def server_info(self) -> dict[str, str]:
        """What the server says of itself."""
        with self._lock:
            return self._open().server_info()

    def server_activity(self) -> Activity:
        """What the server did since it started, by kind and outcome, and how long that took."""
        with self._lock:
            return self._open().activity()

    def max_value_bytes(self, key_bytes: int) -> int:
        """The largest value that this pool takes for a key of this size, if it does not expire."""
        with self._lock:
            return self._open().max_value_bytes(key_bytes)

    def __getitem__(self, key: Bytes) -> bytes:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Bytes, value: Bytes) -> None:
        self.put(key, value)

    def __delitem__(self, key: Bytes) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def __contains__(self, key: Bytes) -> bool:
        return self.get_versioned(key) is not None


class Server:
    """A server in this process, on threads of its own: a context manager, that starts and closes it.

    It opens the pool, or creates it, and recovers it if it was not closed cleanly; nothing is served before start().

    pool: "/dev/daxX.Y", a file, or "dram:" (gone when it is closed).
    listen: "shm:/path/to/socket" or "verbs://host:port", or several of them.
    size: of the pool in bytes, needed to create it.
    on_event: is told in a line of each client that breaks the protocol, keeps others waiting, or is refused.
    on_damage: is told of each key whose stored value is damaged, or None if the key cannot be known any more.
    What is None is as in docs/operations.md: the rest are the options of erda-server.

    on_event and on_damage are called on threads of the server's, of several at once perhaps, from start() until stop()
    has returned. Whom such a thread serves, waits meanwhile: so they should be short, say a put into a queue. They may
    ask the server what it says of itself, but not start, reload, stop or close it: RuntimeError. What they raise goes to
    sys.unraisablehook, which prints it, and the server goes on.
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
                 sync_ms: Optional[int] = None,
                 on_event: Optional[Callable[[str], object]] = None,
                 on_damage: Optional[Callable[[Optional[bytes]], object]] = None) -> None:
        from . import _native_server  # here, so that clients need no server's library

        for name, callback in (("on_event", on_event), ("on_damage", on_damage)):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} must be callable; {type(callback).__name__} is not")
        self._lock = _Turns("server")
        # Who asks takes no turns with who stops: a callback may ask, and a stop waits for it.
        self._idle = threading.Condition()
        self._asking = 0
        self._server: Optional[_native_server.Serving] = None
        self._started = False
        self._server = _native_server.Serving(
            pool, [listen] if isinstance(listen, str) else list(listen), token_file=token_file, on_event=on_event,
            on_damage=on_damage, times={"spin_us": spin_us, "nvm_write_latency_ns": nvm_write_latency_ns, "sync_ms": sync_ms},
            numbers={"pool_size": size, "shards": shards, "region_size": region_size, "segment_size": segment_size,
                     "index_entries": index_entries, "grow_to": grow_to, "max_clients": max_clients,
                     "slots_per_client": slots_per_client,
                     "slot_bytes": slot_bytes, "reservations_per_client": reservations_per_client,
                     "clients_per_token": clients_per_token, "requests_per_second": requests_per_second,
                     "connects_per_second": connects_per_second, "staging_bytes": staging_bytes,
                     "scrub_rate": scrub_rate},
            choices={"shm_access": _choice(_SHM_ACCESS, shm_access, "shm_access"),
                     "pool_writes": _choice(_POOL_WRITES, pool_writes, "pool_writes"),
                     "flush": _choice(_FLUSH, flush, "flush"), "polling": _choice(_POLLING, polling, "polling")})
        _servers.add(self)

    def start(self) -> None:
        """Serves from now on. A server starts once."""
        self._refuse_in_callback()
        with self._lock:
            self._open().start()
            self._started = True

    def reload(self, *, clients_per_token: int = 0, requests_per_second: int = 0, connects_per_second: int = 0,
               token_file: Optional[str] = None) -> None:
        """Replaces the limits by these, all of them, and reads the token file, which may be another one.

        Each request and each connection that comes after the return is under the new limits. Connections beyond a smaller
        clients_per_token stay; clients whose token is not in the file are ended. An error changes nothing. token_file:
        None keeps the file that the server has; a server that was opened without one takes none.
        """
        self._refuse_in_callback()
        with self._lock:
            self._open().reload(clients_per_token=clients_per_token, requests_per_second=requests_per_second,
                                connects_per_second=connects_per_second, token_file=token_file)

    def stop(self) -> None:
        """Closes every connection, and the pool cleanly. It still tells of itself; it does not start again."""
        self._refuse_in_callback()
        with self._lock:
            self._open().stop()

    def close(self) -> None:
        """Stops it, and gives its memory back. Closing twice does nothing; any other call then raises ValueError.

        In a child of a fork it leaves the server to the parent.
        """
        if self._lock.forked:
            self._server = None
            return
        self._refuse_in_callback()
        with self._lock:
            if self._server is not None:
                self._server.stop()  # its callbacks may ask until then
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
        if server.is_telling:  # the last that knew it was its own callback
            threading.Thread(target=server.close).start()
        else:
            self.close()

    def _open(self) -> _native_server.Serving:
        if self._server is None:
            raise ValueError("the server is closed")
        return self._server

    @contextlib.contextmanager
    def _asked(self) -> Iterator[_native_server.Serving]:
        """The server, that is not closed meanwhile."""
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
        """What clients can connect to."""
        with self._asked() as server:
            return server.addresses()

    @property
    def durability(self) -> str:
        """"power-safe", "process-safe" or "volatile": what the pool's medium survives."""
        with self._asked() as server:
            return server.durability()

    @property
    def growth_limit(self) -> int:
        """How many bytes erda-pool resize can give the pool at most."""
        with self._asked() as server:
            return server.growth_limit()

    @property
    def fabrics(self) -> list[ServerFabric]:
        """The fabrics that it is reached on."""
        with self._asked() as server:
            return [ServerFabric(scheme, device, flush_method, registered_in_ns / 1e9)
                    for scheme, device, flush_method, registered_in_ns in server.fabrics()]

    def stats(self) -> dict[str, int]:
        """What it counted, by name."""
        with self._asked() as server:
            return server.stats()

    def activity(self) -> Activity:
        """What it did since it started, by kind and outcome, and how long that took."""
        with self._asked() as server:
            return server.activity()

    def recovery(self) -> Optional[dict[str, int]]:
        """What the opening of a pool found that was not closed cleanly; None if it was, or is new."""
        with self._asked() as server:
            return server.recovery()


_servers: weakref.WeakSet[Server] = weakref.WeakSet()


def _close_servers() -> None:
    """While callbacks can still be called. Not in the child of a fork, which has not the threads."""
    for server in list(_servers):
        if not server._lock.forked:
            server.close()


atexit.register(_close_servers)
