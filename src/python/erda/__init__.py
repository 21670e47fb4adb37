"""Erda, a key-value store for non-volatile memory: the client.

    import erda

    with erda.Client("shm:/run/erda/erda.sock") as client:
        client.put("greeting", "hello")
        client.get("greeting")           # b'hello'
        client.get("nothing")            # None
        client["greeting"]               # b'hello'; KeyError if absent, as in a dict

Keys and values are bytes. A str is taken as its UTF-8; what comes back is always bytes. A key is 1 to 1024 bytes.

What fails raises an erda.Error, one class for each kind; its message says what failed. A key without a value is no error
for get, get_versioned and multi_get, which say None; delete says False; client[key] and del client[key] raise KeyError.

Threads: a Client may be used by several threads, which take turns: each call holds a lock until it ends. For calls at the
same time make a Client for each thread. A Client does not survive os.fork().

The module calls liberda-client.so.0 of the system; ERDA_CLIENT_LIBRARY names another file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Literal, NamedTuple, Optional, Union

from . import _native
from ._native import (ConflictError, CorruptionError, Error, InternalError, InvalidArgumentError, PermissionDeniedError,
                      ResourceExhaustedError, TimeoutError, UnavailableError)

__all__ = [
    "ABSENT", "Client", "ConflictError", "CorruptionError", "Error", "InternalError", "InvalidArgumentError",
    "PermissionDeniedError", "ResourceExhaustedError", "ScannedKey", "TimeoutError", "UnavailableError", "Versioned",
]

Bytes = Union[bytes, bytearray, memoryview, str]

ABSENT = 0
"""As a version in a condition: the key is absent."""

_ACKS = {"placed": 0, "persisted": 1}
_PATHS = {"auto": 0, "reserve": 1, "inline": 2, "delegate": 3}
_POLLING = {"adaptive": 0, "busy": 1, "sleep": 2}


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


def _bytes(data: Bytes) -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"bytes or str, not {type(data).__name__}")


def _choice(choices: dict[str, int], name: str, what: str) -> int:
    if name not in choices:
        raise InvalidArgumentError(f"{what} is one of {', '.join(choices)}, not {name!r}")
    return choices[name]


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
        self._lock = threading.Lock()
        self._client: Optional[_native.Connection] = None
        self._client = _native.Connection(
            address, ack=_choice(_ACKS, ack, "ack"), put_path=_choice(_PATHS, put_path, "put_path"),
            polling=_choice(_POLLING, polling, "polling"), queue_depth=queue_depth, cache_entries=cache_entries,
            timeout_ms=round(timeout * 1000), token=token, token_file=token_file)

    def close(self) -> None:
        """Ends the connection. Closing twice does nothing; any other call then raises ValueError."""
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
        milliseconds = None if ttl is None else round(ttl * 1000)
        if milliseconds is not None and milliseconds < 1:
            raise InvalidArgumentError(f"a time to live is at least 0.001 s, not {ttl}")
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
        """
        cursor: Optional[int] = 0
        while cursor is not None:
            with self._lock:
                page, cursor = self._open().scan(cursor, values)
            for key, value, version, expires in page:
                yield ScannedKey(key, value, version, _expires(expires))

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
