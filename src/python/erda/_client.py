"""Client, and the tuples that it returns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Literal, NamedTuple, Optional, Union

from . import _native
from ._activity import Activity
from ._arguments import POLLING, Bytes, as_bytes, as_milliseconds, choice
from ._native import InvalidArgumentError
from ._turns import Turns

ABSENT = 0
"""In a condition, stands for the version of an absent key."""

_ACKS = {"placed": 0, "persisted": 1}
_PATHS = {"auto": 0, "reserve": 1, "inline": 2, "delegate": 3}


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


def _expires(milliseconds: int) -> Optional[float]:
    return milliseconds / 1000 if milliseconds else None


def _ttl_in_milliseconds(ttl: Optional[float]) -> int:
    """Returns 0 if there is no time to live."""
    if ttl is None:
        return 0
    milliseconds = as_milliseconds(ttl, "a time to live")
    if milliseconds < 1:
        raise InvalidArgumentError(f"a time to live must be at least 0.001 s, not {ttl}")
    return milliseconds


class Client:
    """A connection to a server. As a context manager, it closes the connection at the end.

    address: "shm:/path/to/socket" or "verbs://host:port".
    ack: a put counts as done when its value is "placed" in the server's memory, or "persisted".
    put_path: how a put travels.
    polling: how a call waits.
    queue_depth: operations in flight of one multi_get or multi_put, 1 to 256.
    cache_entries: keys whose locations the client remembers.
    timeout: in seconds, for connecting and for each operation.
    token, token_file: the token that the server demands, or a file with it.
    """

    def __init__(self, address: str, *, ack: Literal["placed", "persisted"] = "persisted",
                 put_path: Literal["auto", "reserve", "inline", "delegate"] = "auto",
                 polling: Literal["adaptive", "busy", "sleep"] = "adaptive", queue_depth: int = 64,
                 cache_entries: int = 65536, timeout: float = 5.0, token: Optional[str] = None,
                 token_file: Optional[str] = None) -> None:
        self._lock = Turns("client")
        self._client: Optional[_native.Connection] = None
        self._client = _native.Connection(
            address, ack=choice(_ACKS, ack, "ack"), put_path=choice(_PATHS, put_path, "put_path"),
            polling=choice(POLLING, polling, "polling"), queue_depth=queue_depth, cache_entries=cache_entries,
            timeout_ms=as_milliseconds(timeout, "timeout"), token=token, token_file=token_file)

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
            found = self._open().get(as_bytes(key))
        return None if found is None else Versioned(found[0], found[1], _expires(found[2]))

    def multi_get(self, keys: Iterable[Bytes]) -> list[Optional[bytes]]:
        """Returns one value for each key, in their order; None for an absent key. Raises the first error, if there is
        one."""
        return [None if found is None else found.value for found in self.multi_get_versioned(keys)]

    def multi_get_versioned(self, keys: Iterable[Bytes]) -> list[Optional[Versioned]]:
        """Works like multi_get, but returns versions and deadlines, too."""
        wanted = [as_bytes(key) for key in keys]
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
        milliseconds = _ttl_in_milliseconds(ttl)
        with self._lock:
            return self._open().put(as_bytes(key), as_bytes(value), version, milliseconds)

    def multi_put(self, puts: Union[Mapping[Bytes, Bytes], Iterable[tuple[Bytes, Bytes]]], *,
                  ttl: Optional[float] = None) -> list[int]:
        """Stores several values in one call, forever or for `ttl` seconds. Returns their versions, in the order of the
        puts. Puts on one key take effect in that order.

        puts: a dict of keys and their values, or pairs.
        Raises the first error, if there is one. Each put has its own outcome, so the others may have taken effect.
        """
        pairs = [(as_bytes(key), as_bytes(value))
                 for key, value in (puts.items() if isinstance(puts, Mapping) else puts)]
        milliseconds = _ttl_in_milliseconds(ttl)
        with self._lock:
            versions = self._open().multi_put(pairs, None, milliseconds)
        return [version for version in versions if version is not None]

    def multi_put_if(self, puts: Iterable[tuple[Bytes, Bytes, int]], *,
                     ttl: Optional[float] = None) -> list[Optional[int]]:
        """Works like multi_put, but each put has a condition, as in put_if. Returns None for each put whose condition
        did not hold. That put changes nothing.

        puts: keys, their values, and the versions that the keys must have just before their puts.
        """
        conditional = [(as_bytes(key), as_bytes(value), version) for key, value, version in puts]
        for key, _, version in conditional:
            if version is None:  # Perhaps the result of a multi_put_if whose condition did not hold.
                raise TypeError(f"{key!r} has no version; ABSENT stands for that of an absent key")
        milliseconds = _ttl_in_milliseconds(ttl)
        with self._lock:
            return self._open().multi_put([(key, value) for key, value, _ in conditional],
                                          [version for _, _, version in conditional], milliseconds)

    def delete(self, key: Bytes) -> bool:
        """Deletes the key. Returns False if it was absent."""
        with self._lock:
            return self._open().delete(as_bytes(key), None)

    def delete_if(self, key: Bytes, version: int) -> None:
        """Deletes if the key has this version just before the delete. Otherwise, or if it is absent, raises
        ConflictError."""
        with self._lock:
            self._open().delete(as_bytes(key), version)

    def incr(self, key: Bytes, delta: int = 1) -> int:
        """Adds to a value of 8 bytes, a signed number in little-endian order, in one step. An absent key counts as 0.
        Returns the sum."""
        with self._lock:
            return self._open().increment(as_bytes(key), delta)

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
