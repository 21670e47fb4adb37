"""The stores that keep their values in files of this machine: how each starts, who its clients are, and its promise."""

from __future__ import annotations

import dataclasses
import pathlib

from comparison import systems
from measuring.programs import Server, ToolError, execute, require_built

MAP_BYTES = 256 * 2**20  # At least, of LMDB.
LMDB_SPACE = 6  # LMDB's map, in sizes of all values: pages are larger than values, and old versions stay for some time.

PROCESS_DEATH = "Survives the death of any process. After a power cut nothing is promised."
POWER_CUT = "Survives a power cut: it is synced to the disk before the call returns."


@dataclasses.dataclass(frozen=True)
class FileStore:
    name: str  # In JSON, and of its files.
    title: str  # For people.
    colour: int
    promise: str  # The promise for an acknowledged put.
    address: str  # With {path}. Empty if it has a server.
    processes: bool  # Several clients are processes. Otherwise they are threads of one process.
    scheme: str = ""  # The prefix of the address that erda-ycsb must be built for.


ERDA = FileStore("erda", "Erda", 0, PROCESS_DEATH + " (On NVM kPersisted also survives a power cut.)", "", processes=True)
LMDB = FileStore("lmdb_writemap", "LMDB, map", 1, PROCESS_DEATH + " (MDB_WRITEMAP, MDB_NOSYNC.)",
                 "lmdb:{path},nosync,writemap,size={map_bytes}", processes=True, scheme="lmdb")
LMDB_WRITES = FileStore("lmdb", "LMDB, write", 2, PROCESS_DEATH + " (MDB_NOSYNC.)", "lmdb:{path},nosync,size={map_bytes}",
                        processes=True, scheme="lmdb")
ROCKSDB = FileStore("rocksdb", "RocksDB", 4, PROCESS_DEATH + " (A write-ahead log without sync.)", "rocksdb:{path}",
                    processes=False, scheme="rocksdb")
TKRZW = FileStore("tkrzw", "Tkrzw", 3, "None for a single put. After the death of the process the next opening restores the records "
                  "that it finds whole. (HashDBM, updated in place.)", "tkrzw:{path}", processes=False, scheme="tkrzw")
REDIS = FileStore("redis", "Redis", 5, systems.EVERYSEC.promise, "", processes=True)
LMDB_SYNCED = FileStore("lmdb_synced", "LMDB, synced", 1, POWER_CUT, "lmdb:{path},size={map_bytes}", processes=True, scheme="lmdb")
ROCKSDB_SYNCED = FileStore("rocksdb_synced", "RocksDB, synced", 4, POWER_CUT, "rocksdb:{path},sync", processes=False,
                           scheme="rocksdb")

# The stores of the preset durable.
ERDA_JOURNAL = FileStore("erda_journal", "Erda, journal", 0, POWER_CUT + " (A pool with a journal.)", "", processes=False)
REDIS_ALWAYS = FileStore("redis_always", "Redis, always", 5, systems.ALWAYS.promise, "", processes=False)
LMDB_MAP_SYNCED = FileStore("lmdb_writemap_synced", "LMDB, map, synced", 2, POWER_CUT + " (MDB_WRITEMAP: the kernel writes the pages "
                            "of the map, and msync waits for that.)", "lmdb:{path},writemap,size={map_bytes}", processes=False,
                            scheme="lmdb")

MAIN = (ERDA, LMDB, LMDB_WRITES, ROCKSDB, TKRZW)
BESIDE = (ERDA, LMDB, LMDB_WRITES, ROCKSDB, TKRZW, REDIS)
SYNCED = (LMDB_SYNCED, ROCKSDB_SYNCED)
ALL = (*MAIN, REDIS, *SYNCED)
DURABLE = (ERDA_JOURNAL, REDIS_ALWAYS, ROCKSDB_SYNCED, LMDB_SYNCED, LMDB_MAP_SYNCED)
SERVERS = {"erda": "erda_file", "redis": "redis_everysec", "erda_journal": "erda_journal", "redis_always": "redis_always"}


class Opened:
    """A store in a folder, with its server if it has one."""

    def __init__(self, store: FileStore, build: pathlib.Path, folder: pathlib.Path, value_bytes: int) -> None:
        self.store = store
        self.server: Server | None = None
        if store.address:
            map_bytes = max(MAP_BYTES, value_bytes * LMDB_SPACE)
            self.address = store.address.format(path=folder / f"{store.name}.data", map_bytes=map_bytes)
        else:
            self.server = systems.start(SERVERS[store.name], build, folder, value_bytes)
            self.address = self.server.address

    def stop(self) -> None:
        if self.server:
            self.server.stop()


def updates_to_age(store: FileStore, records: int, size: int, value_bytes: int, other_bytes: int) -> int:
    """Returns the updates that put a store into the state of one that has run for some time: Erda's log is written
    through once, and the others have freed and used their pages again."""
    return systems.pool_bytes(value_bytes) // (size + other_bytes) if store in (ERDA, ERDA_JOURNAL) else records


def require_stores(build: pathlib.Path, folder: pathlib.Path, used: tuple[FileStore, ...]) -> None:
    """Checks that the programs exist, and that erda-ycsb has the libraries. Raises an error that says what to do."""
    require_built(build, ("erda-server", "erda-ycsb"))
    if REDIS in used or REDIS_ALWAYS in used:
        systems.require_redis()
    for scheme in sorted({store.scheme for store in used if store.scheme}):
        try:  # It refuses the option after it has looked for the library.
            execute([str(build / "bin" / "erda-ycsb"), "--address", f"{scheme}:{folder}/none,unknown", "--workload", "C"])
        except ToolError as error:
            if "built without" in str(error):
                raise ToolError(f"erda-ycsb was built without {scheme}: install it (on Debian: tools/install-deps test), and "
                                "build again") from error
