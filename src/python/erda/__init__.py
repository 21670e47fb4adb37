"""Erda, a key-value store for non-volatile memory: the client, and a server in this process.

    import erda

    with erda.Client("shm:/run/erda/socket") as client:
        client.put("greeting", "hello")
        client.get("greeting")           # b'hello'
        client.get("nothing")            # None
        client["greeting"]               # b'hello'; KeyError if absent, as in a dict

Keys and values are bytes. A str argument stands for its UTF-8 bytes; every result is bytes. A key has 1 to 1024 bytes.

A call that fails raises a subclass of erda.Error, one for each kind of failure. The message names the thing that
failed. An absent key is no error for get, get_versioned and multi_get, which return None. delete returns False.
client[key] and del client[key] raise KeyError.

    with erda.Server("dram:", "shm:/tmp/erda.sock", size=64 << 20), erda.Client("shm:/tmp/erda.sock") as client:
        ...

Threads: several threads may use one Client. They take turns, since each call holds a lock until it ends. For calls at
the same time, make a Client for each thread. start, reload, stop and close of a Server take turns, too. Any thread
may read a server's properties and counts at any time. Neither works after os.fork(): in the child each call raises
InvalidArgumentError. close() and the end of the child leave the parent's client or server alone.

The module loads liberda-client.so.0 of the system, and liberda-server.so.0 for the first Server. ERDA_CLIENT_LIBRARY
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
"""In a condition, stands for the version of an absent key."""

_ACKS = {"placed": 0, "persisted": 1}
_PATHS = {"auto": 0, "reserve": 1, "inline": 2, "delegate": 3}
_POLLING = {"adaptive": 0, "busy": 1, "sleep": 2}
_SHM_ACCESS = {"owner": 0, "group": 1, "everybody": 2}
_POOL_WRITES = {"nobody": 0, "same-user": 1, "everybody": 2}
_FLUSH = {"auto": 0, "server-flush": 1, "read-after-write": 2}


class Versioned(NamedTuple):
    """A value, the version that its put gave to the key, and its deadline: seconds since 1970, or None if it stays."""

    value: bytes
    version: int
    expires: Optional[float]


class ScannedKey(NamedTuple):
    """A key with its value, version and deadline, as in Versioned."""

    key: bytes
    value: bytes
    version: int
    expires: Optional[float]


class ScanPage(NamedTuple):
    """One page of a scan.

    keys: may be empty although more pages follow.
    next: the cursor of the next page; None after the last page.
    part: the part of the scan that is done after this page, up to 1.0.
    damaged: the number of damaged keys in this page, which the scan cannot return.
    """

    keys: list[ScannedKey]
    next: Optional[int]
    part: float
    damaged: int


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
    """The lock of an object that belongs to the process that made it. A child of a fork must not wait for the lock: a
    thread that exists only in the parent may hold it forever."""

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
    """A connection to a server. As a context manager, it closes the connection at the end.

    address: "shm:/path/to/socket" or "verbs://host:port".
    ack: a put counts as done when its value is "placed" in the server's memory, or "persisted".
    put_path: how a put travels.
    polling: how a call waits.
    queue_depth: operations in flight of one multi_get, 1 to 256.
    cache_entries: keys whose locations the client remembers.
    timeout: in seconds, for connecting and for each operation.
    token, token_file: the token that the server demands, or a file with it.
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
        """Ends the connection. A second close does nothing; any other call then raises ValueError.

        In a child of a fork, leaves the connection to the parent.
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
        """Returns the value, or None if the key is absent."""
        found = self.get_versioned(key)
        return None if found is None else found.value

    def get_versioned(self, key: Bytes) -> Optional[Versioned]:
        """Returns the value with its version and deadline, or None."""
        with self._lock:
            found = self._open().get(_bytes(key))
        return None if found is None else Versioned(found[0], found[1], _expires(found[2]))

    def multi_get(self, keys: Iterable[Bytes]) -> list[Optional[bytes]]:
        """Returns one value for each key, in their order; None for an absent key. Raises the first error, if there is
        one."""
        return [None if found is None else found.value for found in self.multi_get_versioned(keys)]

    def multi_get_versioned(self, keys: Iterable[Bytes]) -> list[Optional[Versioned]]:
        """Works like multi_get, but returns versions and deadlines, too."""
        wanted = [_bytes(key) for key in keys]
        with self._lock:
            all_found = self._open().multi_get(wanted)
        return [None if found is None else Versioned(found[0], found[1], _expires(found[2])) for found in all_found]

    def put(self, key: Bytes, value: Bytes, *, ttl: Optional[float] = None) -> int:
        """Stores the value, forever or for `ttl` seconds. Returns its version."""
        return self._put(key, value, None, ttl)

    def put_if(self, key: Bytes, value: Bytes, version: int, *, ttl: Optional[float] = None) -> int:
        """Puts if the key has this version just before the put; ABSENT demands that the key has no value. Returns the
        version of the value. If the condition does not hold, raises ConflictError and changes nothing."""
        return self._put(key, value, version, ttl)

    def _put(self, key: Bytes, value: Bytes, version: Optional[int], ttl: Optional[float]) -> int:
        milliseconds = None if ttl is None else _milliseconds(ttl, "a time to live")
        if milliseconds is not None and milliseconds < 1:
            raise InvalidArgumentError(f"a time to live must be at least 0.001 s, not {ttl}")
        with self._lock:
            return self._open().put(_bytes(key), _bytes(value), version, milliseconds or 0)

    def delete(self, key: Bytes) -> bool:
        """Deletes the key. Returns False if it was absent."""
        with self._lock:
            return self._open().delete(_bytes(key), None)

    def delete_if(self, key: Bytes, version: int) -> None:
        """Deletes if the key has this version just before the delete. Otherwise, or if it is absent, raises
        ConflictError."""
        with self._lock:
            self._open().delete(_bytes(key), version)

    def incr(self, key: Bytes, delta: int = 1) -> int:
        """Adds to a value of 8 bytes, a signed number in little-endian order, in one step. An absent key counts as 0.
        Returns the sum."""
        with self._lock:
            return self._open().increment(_bytes(key), delta)

    def ttl(self, key: Bytes) -> Optional[float]:
        """Returns the seconds until the value expires, by this machine's clock; None if it stays. Raises KeyError if
        the key is absent."""
        found = self.get_versioned(key)
        if found is None:
            raise KeyError(key)
        return None if found.expires is None else max(0.0, found.expires - _native.now())

    def scan(self, *, values: bool = True) -> Iterator[ScannedKey]:
        """Yields all keys, in no order. Other calls may run in between; docs/protocol.md describes the result of such a
        scan.

        values: if False, the scan reads keys alone, and each value is b"".
        A scan skips damaged keys; scan_page counts them.
        """
        cursor: Optional[int] = 0
        while cursor is not None:
            page = self.scan_page(cursor, values=values)
            yield from page.keys
            cursor = page.next

    def scan_page(self, cursor: int = 0, *, keys: int = 1000, size: int = 4 << 20, values: bool = True) -> ScanPage:
        """Returns one page of a scan. Use it to continue a scan later or elsewhere: a cursor is valid as long as the
        pool exists.

        cursor: 0, or `next` of the page before.
        keys, size: the page ends after about this number of keys, or of bytes read, but not before its first key.
        values: as in scan.
        """
        with self._lock:
            found, following, part, damaged = self._open().scan(cursor, keys, size, values)
        told = [ScannedKey(key, value, version, _expires(expires)) for key, value, version, expires in found]
        return ScanPage(told, following, part, damaged)

    def clean(self) -> None:
        """Asks the server to clean its log. Returns when the cleaning has begun."""
        with self._lock:
            self._open().clean()

    def stats(self) -> dict[str, int]:
        """Returns this client's counts since it connected, by name."""
        with self._lock:
            return self._open().stats()

    def server_info(self) -> dict[str, str]:
        """Returns facts and counts of the server, by name."""
        with self._lock:
            return self._open().server_info()

    def server_activity(self) -> Activity:
        """Returns counts and durations of the server's work since it started, by kind and outcome."""
        with self._lock:
            return self._open().activity()

    def max_value_bytes(self, key_bytes: int) -> int:
        """Returns the size of the largest value that this pool takes for a key of this size, if the value does not
        expire."""
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
                 sync_ms: Optional[int] = None,
                 on_event: Optional[Callable[[str], object]] = None,
                 on_damage: Optional[Callable[[Optional[bytes]], object]] = None) -> None:
        from . import _native_server  # Imported here, so that clients need no server library.

        for name, callback in (("on_event", on_event), ("on_damage", on_damage)):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} must be callable; {type(callback).__name__} is not")
        self._lock = _Turns("server")
        # Reading the server's state does not take the lock: a callback may read it while a stop waits for the callback.
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
