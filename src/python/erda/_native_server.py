"""The server's part of the C API, erda/erda.h, by ctypes. The first Server loads it."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Callable, Optional

from . import _activity
from ._native import _NOT_FOUND, InternalError, _failure, _signed, _text, _unsigned, open_library

_NUMBERS = {
    "pool_size": 64, "shards": 32, "max_clients": 32, "region_size": 64, "segment_size": 64, "index_entries": 64,
    "grow_to": 64, "journal_size": 64,
    "slots_per_client": 32, "slot_bytes": 32, "reservations_per_client": 32, "clients_per_token": 32,
    "requests_per_second": 32, "connects_per_second": 32, "staging_bytes": 64, "scrub_rate": 64,
}
"""The unsigned options, with their numbers of bits."""

_OnDamage = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)
_OnEvent = CFUNCTYPE(None, c_void_p, c_char_p)


class _Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("pool", c_char_p), ("pool_size", c_uint64), ("listen", POINTER(c_char_p)),
                ("listen_count", c_size_t), ("shards", c_uint32), ("max_clients", c_uint32), ("region_size", c_uint64),
                ("segment_size", c_uint64), ("index_entries", c_uint64), ("slots_per_client", c_uint32),
                ("slot_bytes", c_uint32), ("reservations_per_client", c_uint32), ("clients_per_token", c_uint32),
                ("requests_per_second", c_uint32), ("connects_per_second", c_uint32), ("token_file", c_char_p),
                ("shm_access", c_int), ("pool_writes", c_int), ("staging_bytes", c_uint64), ("flush", c_int),
                ("polling", c_int), ("scrub_rate", c_uint64), ("on_damage", _OnDamage), ("on_damage_user", c_void_p),
                ("on_event", _OnEvent), ("on_event_user", c_void_p), ("spin_us", c_int64),
                ("nvm_write_latency_ns", c_int64), ("sync_ms", c_int64), ("grow_to", c_uint64),
                ("populate", c_int), ("journal_on_tmpfs", c_int), ("journal", c_char_p), ("journal_size", c_uint64),
                ("journal_interval_ms", c_int64), ("journal_memory", c_char_p), ("journal_front", c_char_p),
                ("archive", c_char_p)]


class _Limits(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("clients_per_token", c_uint32), ("requests_per_second", c_uint32),
                ("connects_per_second", c_uint32), ("token_file", c_char_p)]


# tools/statistics/generate: begin
_COUNTS = ("puts", "puts_inline", "puts_staged", "puts_reserved", "puts_delegated", "commits", "deletes", "refused",
           "violations", "settled", "taken_back", "nvm_bytes_written", "shards", "clients", "keys", "index_slots",
           "log_bytes_used", "log_bytes_total", "in_flight", "descriptors", "registered_bytes", "sleeps",
           "log_bytes_live", "puts_delayed", "regions_cleaned", "clean_bytes_copied", "clean_bytes_freed",
           "clean_nvm_bytes_written", "scrub_bytes", "damaged_keys", "clean_moves", "free_regions", "cleaning",
           "set_aside", "expired", "chunks", "chunk_bytes", "overdue", "reports", "nvm_flushes", "nvm_fences", "syncs",
           "sync_failures", "synced_at_ms", "flips_undone", "journal_stream_bytes", "journal_held_bytes",
           "journal_bytes_written", "journal_flushes", "journal_ring_bytes", "journal_ring_used", "journal_checkpoints",
           "journal_checkpoint_at_ms", "journal_interval_ms", "journal_full_times", "journals_failed",
           "archive_bytes_written", "archive_waiting_bytes", "archives_failing", "archive_gaps", "journal_front_bytes",
           "journal_front_used", "journal_front_full_times", "journal_error_number")
# tools/statistics/generate: end


class _Stats(ctypes.Structure):
    _fields_ = [("size", c_size_t), *((name, c_uint64) for name in _COUNTS)]


_FINDINGS = ("objects", "index_slots", "unsettled", "settled", "taken_back", "dropped", "deletes_finished", "damaged",
             "moves_undone", "regions_unlinked", "time_ns", "shards_verified")


class _Report(ctypes.Structure):
    _fields_ = [("size", c_size_t), *((name, c_uint64) for name in _FINDINGS)]


class _Addresses(ctypes.Structure):
    _fields_ = [("addresses", POINTER(c_char_p)), ("count", c_size_t)]


class _Fabric(ctypes.Structure):
    _fields_ = [("scheme", c_char_p), ("device", c_char_p), ("flush_method", c_char_p), ("registered_in_ns", c_int64)]


class _Fabrics(ctypes.Structure):
    _fields_ = [("fabrics", POINTER(_Fabric)), ("count", c_size_t)]


def _load() -> ctypes.CDLL:
    library = open_library("liberda-server.so.0", "ERDA_SERVER_LIBRARY")
    for name, arguments in {
        "options_init": [POINTER(_Options), c_size_t],
        "free": [c_void_p],
        "close": [c_void_p],
        "open": [POINTER(_Options), POINTER(c_void_p)],
        "start": [c_void_p],
        "reload": [c_void_p, POINTER(_Limits)],
        "stop": [c_void_p],
        "get_addresses": [c_void_p, POINTER(POINTER(_Addresses))],
        "get_stats": [c_void_p, POINTER(_Stats)],
        "get_activity": [c_void_p, POINTER(POINTER(_activity.ActivityInC))],
        "get_fabrics": [c_void_p, POINTER(POINTER(_Fabrics))],
        "get_recovery": [c_void_p, POINTER(_Report)],
        "durability": [c_void_p],
        "health": [c_void_p],
        "growth_limit": [c_void_p],
        "error": [],
    }.items():
        function = getattr(library, "erda_server_" + name)
        function.argtypes = arguments
        function.restype = c_int
        if name in ("options_init", "free", "close"):
            function.restype = None
    library.erda_server_error.restype = c_char_p
    library.erda_server_durability.restype = c_char_p
    library.erda_server_growth_limit.restype = c_uint64
    return library


_library = _load()


def _check(code: int) -> None:
    if code != 0:
        raise _failure(code, _library.erda_server_error())


def _damage_teller(on_damage: Callable[[Optional[bytes]], object]) -> Callable[..., object]:
    return lambda _user, key, size: on_damage(None if key is None else ctypes.string_at(key, size))


def _event_teller(on_event: Callable[[str], object]) -> Callable[..., object]:
    return lambda _user, line: on_event(line.decode(errors="replace"))


def _marked(telling: threading.local, callback: Callable[..., object]) -> Callable[..., None]:
    """Returns a callback that sets a mark of its thread in `telling` while it runs."""

    def tell(*arguments: object) -> None:
        telling.now = True
        try:
            callback(*arguments)
        finally:
            telling.now = False

    return tell


class Serving:
    """An erda_server with an open pool."""

    def __init__(self, pool: str, listen: list[str], *, numbers: dict[str, Optional[int]],
                 times: dict[str, Optional[int]], texts: dict[str, Optional[str]], choices: dict[str, int],
                 on_damage: Optional[Callable[[Optional[bytes]], object]],
                 on_event: Optional[Callable[[str], object]]) -> None:
        options = _Options()
        _library.erda_server_options_init(byref(options), ctypes.sizeof(options))
        if options.size == 0:
            raise InternalError("liberda-server has another version than this module: install both of one version")
        options.pool = _text(pool, "the pool")
        addresses = [_text(address, "an address") for address in listen]
        options.listen = (c_char_p * len(addresses))(*addresses)
        options.listen_count = len(addresses)
        for name, text in texts.items():
            if text is not None:
                setattr(options, name, _text(text, name))
        for name, number in numbers.items():
            if number is not None:
                setattr(options, name, _unsigned(number, _NUMBERS[name], name))
        for name, number in times.items():
            if number is not None:
                setattr(options, name, _signed(number, name))
        for name, number in choices.items():
            setattr(options, name, number)
        # These objects must live as long as the server. ctypes passes exceptions of callbacks to sys.unraisablehook.
        self._telling = threading.local()
        if on_damage is not None:
            self._on_damage = options.on_damage = _OnDamage(_marked(self._telling, _damage_teller(on_damage)))
        if on_event is not None:
            self._on_event = options.on_event = _OnEvent(_marked(self._telling, _event_teller(on_event)))
        self._server = c_void_p()
        _check(_library.erda_server_open(byref(options), byref(self._server)))

    @property
    def is_telling(self) -> bool:
        """Whether this thread is in a callback of the server. A stop or close there would wait for the callback's end.
        """
        return getattr(self._telling, "now", False)

    def start(self) -> None:
        _check(_library.erda_server_start(self._server))

    def reload(self, *, token_file: Optional[str], **numbers: int) -> None:
        limits = _Limits(size=ctypes.sizeof(_Limits), token_file=_text(token_file, "token_file"))
        for name, number in numbers.items():
            setattr(limits, name, _unsigned(number, _NUMBERS[name], name))
        _check(_library.erda_server_reload(self._server, byref(limits)))

    def stop(self) -> None:
        _check(_library.erda_server_stop(self._server))

    def close(self) -> None:
        _library.erda_server_close(self._server)

    def addresses(self) -> list[str]:
        addresses = POINTER(_Addresses)()
        _check(_library.erda_server_get_addresses(self._server, byref(addresses)))
        try:
            told = addresses.contents
            return [os.fsdecode(told.addresses[i]) for i in range(told.count)]
        finally:
            _library.erda_server_free(addresses)

    def fabrics(self) -> list[tuple[str, str, str, int]]:
        fabrics = POINTER(_Fabrics)()
        _check(_library.erda_server_get_fabrics(self._server, byref(fabrics)))
        try:
            told = fabrics.contents
            return [(fabric.scheme.decode(), fabric.device.decode(), fabric.flush_method.decode(),
                     fabric.registered_in_ns) for fabric in told.fabrics[:told.count]]
        finally:
            _library.erda_server_free(fabrics)

    def activity(self) -> _activity.Activity:
        activity = POINTER(_activity.ActivityInC)()
        _check(_library.erda_server_get_activity(self._server, byref(activity)))
        try:
            return _activity.copy(activity.contents)
        finally:
            _library.erda_server_free(activity)

    def stats(self) -> dict[str, int]:
        stats = _Stats(size=ctypes.sizeof(_Stats))
        _check(_library.erda_server_get_stats(self._server, byref(stats)))
        return {name: getattr(stats, name) for name in _COUNTS}

    def recovery(self) -> Optional[dict[str, int]]:
        report = _Report(size=ctypes.sizeof(_Report))
        code = _library.erda_server_get_recovery(self._server, byref(report))
        if code == _NOT_FOUND:
            return None
        _check(code)
        return {name: getattr(report, name) for name in _FINDINGS}

    def durability(self) -> str:
        return _library.erda_server_durability(self._server).decode()

    def check_health(self) -> None:
        _check(_library.erda_server_health(self._server))

    def growth_limit(self) -> int:
        return _library.erda_server_growth_limit(self._server)
