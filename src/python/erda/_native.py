"""The C API, erda/erda.h, by ctypes. This file repeats its structures and numbers in the same order."""

from __future__ import annotations

import ctypes
import os
import pathlib
import time
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Optional

from . import _activity

now = time.time

Found = tuple[bytes, int, int]  # value, version, expires in ms or 0
Page = tuple[list[tuple[bytes, bytes, int, int]], Optional[int], float, int]  # keys, next, part, damaged


class Error(Exception):
    """A call failed. Each kind of failure is a subclass."""


class InvalidArgumentError(Error, ValueError):
    """The call can never succeed in this form."""


class ConflictError(Error):
    """A condition did not hold. Read again and decide."""


class ResourceExhaustedError(Error):
    """There is no room now, or no memory."""


class UnavailableError(Error, ConnectionError):
    """The server cannot be reached, or went away. A put or delete in flight may or may not have taken effect."""


class TimeoutError(Error, TimeoutError):  # The name hides the built-in one in this module only.
    """No answer came in time. Proceed as with UnavailableError."""


class PermissionDeniedError(Error, PermissionError):
    """The peer, the token or the file's rights forbid the call."""


class CorruptionError(Error):
    """Stored bytes are damaged."""


class InternalError(Error):
    """A bug in Erda, or a failure of the machine for which no other class fits."""


_NOT_FOUND = 1
_CONFLICT = 3
_ERRORS: dict[int, type[Error]] = {
    2: InvalidArgumentError, 3: ConflictError, 4: ResourceExhaustedError, 5: UnavailableError, 6: TimeoutError,
    7: PermissionDeniedError, 8: CorruptionError, 9: InternalError,
}


class _ClientOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("ack", c_int), ("put_path", c_int), ("polling", c_int), ("queue_depth", c_uint32),
                ("cache_entries", c_uint32), ("timeout_ms", c_int64), ("token", c_char_p), ("token_file", c_char_p),
                ("wait_for_room", c_int)]


class _PutOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("conditional", c_int), ("if_version", c_uint64), ("ttl_ms", c_int64)]


class _DeleteOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("conditional", c_int), ("if_version", c_uint64)]


class _ScanOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("cursor", c_uint64), ("keys", c_size_t), ("bytes", c_size_t), ("values", c_int)]


class _Bytes(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]

    def copy(self) -> bytes:
        return ctypes.string_at(self.data, self.size) if self.size else b""


class _Result(ctypes.Structure):
    _fields_ = [("code", c_int), ("message", c_char_p), ("value", _Bytes), ("version", c_uint64),
                ("expires_ms", c_int64), ("sum", c_int64)]


class _ScannedKey(ctypes.Structure):
    _fields_ = [("key", _Bytes), ("value", _Bytes), ("version", c_uint64), ("expires_ms", c_int64)]


class _ScanPage(ctypes.Structure):
    _fields_ = [("keys", POINTER(_ScannedKey)), ("count", c_size_t), ("more", c_int), ("next", c_uint64),
                ("part", c_double), ("damaged", c_uint64)]


_COUNTS = ("gets", "puts", "deletes", "failures", "reads", "read_bytes", "requests", "nvm_bytes_written",
           "second_looks", "cache_hits", "cache_misled", "older_versions", "reconnects", "sleeps")


class _Stats(ctypes.Structure):
    _fields_ = [("size", c_size_t), *((name, c_uint64) for name in _COUNTS)]


class _ServerInfo(ctypes.Structure):
    _fields_ = [("names", POINTER(c_char_p)), ("values", POINTER(c_char_p)), ("count", c_size_t)]


def open_library(name: str, variable: str) -> ctypes.CDLL:
    """Loads the library that the environment variable names. Otherwise looks in the prefix in which this module is
    installed, which the loader need not know. Otherwise asks the loader."""
    if variable in os.environ:
        return ctypes.CDLL(os.environ[variable])
    for folder in pathlib.Path(__file__).resolve().parents:
        if folder.name == "lib":
            for library in (folder / name, *sorted(folder.glob(f"*-linux-gnu/{name}"))):
                if library.exists():
                    return ctypes.CDLL(str(library))
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise OSError(f"{error}: run ldconfig after an installation, or name the library in {variable}") from None


def _load() -> ctypes.CDLL:
    library = open_library("liberda-client.so.0", "ERDA_CLIENT_LIBRARY")
    key = [c_void_p, c_char_p, c_size_t]
    for name, arguments in {
        "options_init": [POINTER(_ClientOptions), c_size_t],
        "put_options_init": [POINTER(_PutOptions), c_size_t],
        "delete_options_init": [POINTER(_DeleteOptions), c_size_t],
        "scan_options_init": [POINTER(_ScanOptions), c_size_t],
        "free": [c_void_p],
        "close": [c_void_p],
        "connect": [c_char_p, POINTER(_ClientOptions), POINTER(c_void_p)],
        "get_alloc": [*key, POINTER(POINTER(_Result))],
        "put": [*key, c_char_p, c_size_t, POINTER(_PutOptions), POINTER(c_uint64)],
        "delete": [*key, POINTER(_DeleteOptions)],
        "increment": [*key, c_int64, POINTER(c_int64)],
        "multi_get": [c_void_p, POINTER(_Bytes), c_size_t, POINTER(POINTER(_Result))],
        "multi_put": [c_void_p, POINTER(_Bytes), POINTER(_Bytes), POINTER(POINTER(_PutOptions)), c_size_t,
                      POINTER(POINTER(_Result))],
        "scan": [c_void_p, POINTER(_ScanOptions), POINTER(POINTER(_ScanPage))],
        "clean": [c_void_p],
        "get_stats": [c_void_p, POINTER(_Stats)],
        "get_server_info": [c_void_p, POINTER(POINTER(_ServerInfo))],
        "get_activity": [c_void_p, POINTER(POINTER(_activity.ActivityInC))],
        "max_value_bytes": [c_void_p, c_size_t],
        "error": [],
    }.items():
        function = getattr(library, "erda_client_" + name)
        function.argtypes = arguments
        function.restype = c_int
        if name.endswith("_init") or name in ("free", "close"):
            function.restype = None
    library.erda_client_error.restype = c_char_p
    library.erda_client_max_value_bytes.restype = c_size_t
    return library


_library = _load()


def _failure(code: int, message: bytes) -> Error:
    return _ERRORS.get(code, InternalError)(message.decode(errors="replace"))


def _check(code: int) -> None:
    if code != 0:
        raise _failure(code, _library.erda_client_error())


def _unsigned(number: int, bits: int, what: str) -> int:
    """Checks the range. Without it, ctypes would drop the bits that do not fit."""
    if not 0 <= number < 1 << bits:
        raise InvalidArgumentError(f"{what} must be 0 or more, and fit into {bits} bits; {number} does not")
    return number


def _signed(number: int, what: str) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise InvalidArgumentError(f"{what} must fit into 64 bits; {number} does not")
    return number


def _text(text: Optional[str], what: str) -> Optional[bytes]:
    if text is None:
        return None
    if "\0" in text:
        raise InvalidArgumentError(f"{what} must have no zero character")
    return os.fsencode(text)


def _array_of(all_bytes: list[bytes]) -> ctypes.Array[_Bytes]:
    """Its pointers lead into the bytes objects themselves, which the caller keeps alive."""
    return (_Bytes * len(all_bytes))(*(_Bytes(ctypes.cast(some, c_void_p), len(some)) for some in all_bytes))


def _put_options(if_version: Optional[int], ttl_ms: int) -> _PutOptions:
    options = _PutOptions()
    _library.erda_client_put_options_init(byref(options), ctypes.sizeof(options))
    if if_version is not None:
        options.conditional = 1
        options.if_version = _unsigned(if_version, 64, "a version")
    options.ttl_ms = _signed(ttl_ms, "a time to live")
    return options


class Connection:
    """An erda_client. Takes one call at a time."""

    def __init__(self, address: str, *, ack: int, put_path: int, polling: int, queue_depth: int, cache_entries: int,
                 timeout_ms: int, token: Optional[str], token_file: Optional[str]) -> None:
        options = _ClientOptions()
        _library.erda_client_options_init(byref(options), ctypes.sizeof(options))
        options.ack = ack
        options.put_path = put_path
        options.polling = polling
        options.queue_depth = _unsigned(queue_depth, 32, "queue_depth")
        options.cache_entries = _unsigned(cache_entries, 32, "cache_entries")
        options.timeout_ms = _signed(timeout_ms, "timeout")
        options.token = _text(token, "the token")
        options.token_file = _text(token_file, "token_file")
        self._client = c_void_p()
        _check(_library.erda_client_connect(_text(address, "the address"), byref(options), byref(self._client)))

    def close(self) -> None:
        _library.erda_client_close(self._client)

    def get(self, key: bytes) -> Optional[Found]:
        result = POINTER(_Result)()
        code = _library.erda_client_get_alloc(self._client, key, len(key), byref(result))
        if code == _NOT_FOUND:
            return None
        _check(code)
        try:
            found = result.contents
            return found.value.copy(), found.version, found.expires_ms
        finally:
            _library.erda_client_free(result)

    def multi_get(self, keys: list[bytes]) -> list[Optional[Found]]:
        results = POINTER(_Result)()
        _check(_library.erda_client_multi_get(self._client, _array_of(keys), len(keys), byref(results)))
        try:
            all_found: list[Optional[Found]] = []
            for i in range(len(keys)):
                result = results[i]
                if result.code not in (0, _NOT_FOUND):
                    raise _failure(result.code, result.message)
                absent = result.code == _NOT_FOUND
                all_found.append(None if absent else (result.value.copy(), result.version, result.expires_ms))
            return all_found
        finally:
            _library.erda_client_free(results)

    def put(self, key: bytes, value: bytes, if_version: Optional[int], ttl_ms: int) -> int:
        options = _put_options(if_version, ttl_ms)
        version = c_uint64()
        _check(_library.erda_client_put(self._client, key, len(key), value, len(value), byref(options), byref(version)))
        return version.value

    def multi_put(self, pairs: list[tuple[bytes, bytes]], if_versions: Optional[list[int]],
                  ttl_ms: int) -> list[Optional[int]]:
        """Returns None for each put whose condition did not hold."""
        keys = [key for key, _ in pairs]
        values = [value for _, value in pairs]
        conditions: list[Optional[int]] = [None] * len(pairs)
        if if_versions is not None:
            conditions = list(if_versions)
        options = [_put_options(version, ttl_ms) for version in conditions]
        pointers = (POINTER(_PutOptions) * len(options))(*map(ctypes.pointer, options))
        results = POINTER(_Result)()
        _check(_library.erda_client_multi_put(self._client, _array_of(keys), _array_of(values), pointers, len(pairs),
                                              byref(results)))
        try:
            versions: list[Optional[int]] = []
            for i, condition in enumerate(conditions):
                result = results[i]
                conflict = result.code == _CONFLICT and condition is not None
                if result.code != 0 and not conflict:
                    raise _failure(result.code, result.message)
                versions.append(None if conflict else result.version)
            return versions
        finally:
            _library.erda_client_free(results)

    def delete(self, key: bytes, if_version: Optional[int]) -> bool:
        options = _DeleteOptions()
        _library.erda_client_delete_options_init(byref(options), ctypes.sizeof(options))
        if if_version is not None:
            options.conditional = 1
            options.if_version = _unsigned(if_version, 64, "a version")
        code = _library.erda_client_delete(self._client, key, len(key), byref(options))
        if code == _NOT_FOUND:
            return False
        _check(code)
        return True

    def increment(self, key: bytes, delta: int) -> int:
        total = c_int64()
        _check(_library.erda_client_increment(self._client, key, len(key), _signed(delta, "delta"), byref(total)))
        return total.value

    def scan(self, cursor: int, keys: int, size: int, values: bool) -> Page:
        options = _ScanOptions()
        _library.erda_client_scan_options_init(byref(options), ctypes.sizeof(options))
        options.cursor = _unsigned(cursor, 64, "a cursor")
        options.keys = _unsigned(keys, 64, "the number of keys")
        options.bytes = _unsigned(size, 64, "the number of bytes")
        options.values = int(values)
        page = POINTER(_ScanPage)()
        _check(_library.erda_client_scan(self._client, byref(options), byref(page)))
        try:
            told = page.contents
            found = [(key.key.copy(), key.value.copy(), key.version, key.expires_ms)
                     for key in (told.keys[i] for i in range(told.count))]
            return found, told.next if told.more else None, told.part, told.damaged
        finally:
            _library.erda_client_free(page)

    def clean(self) -> None:
        _check(_library.erda_client_clean(self._client))

    def stats(self) -> dict[str, int]:
        stats = _Stats(size=ctypes.sizeof(_Stats))
        _check(_library.erda_client_get_stats(self._client, byref(stats)))
        return {name: getattr(stats, name) for name in _COUNTS}

    def server_info(self) -> dict[str, str]:
        info = POINTER(_ServerInfo)()
        _check(_library.erda_client_get_server_info(self._client, byref(info)))
        try:
            pairs = info.contents
            return {pairs.names[i].decode(): pairs.values[i].decode() for i in range(pairs.count)}
        finally:
            _library.erda_client_free(info)

    def activity(self) -> _activity.Activity:
        activity = POINTER(_activity.ActivityInC)()
        _check(_library.erda_client_get_activity(self._client, byref(activity)))
        try:
            return _activity.copy(activity.contents)
        finally:
            _library.erda_client_free(activity)

    def max_value_bytes(self, key_bytes: int) -> int:
        return _library.erda_client_max_value_bytes(self._client, _unsigned(key_bytes, 64, "the key's size"))
