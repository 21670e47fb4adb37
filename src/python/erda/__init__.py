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

from typing import Optional  # typing.get_type_hints looks here for the names in the annotations of the tuples.

from ._activity import Activity, FabricStats, LatencyHistogram, OperationStats, Outcomes
from ._arguments import Bytes
from ._client import ABSENT, Client, ScannedKey, ScanPage, Versioned
from ._native import (ConflictError, CorruptionError, Error, InternalError, InvalidArgumentError, PermissionDeniedError,
                      ResourceExhaustedError, TimeoutError, UnavailableError)
from ._server import Server, ServerFabric

__all__ = [
    "ABSENT", "Activity", "Client", "ConflictError", "CorruptionError", "Error", "FabricStats", "InternalError",
    "InvalidArgumentError", "LatencyHistogram", "OperationStats", "Outcomes", "PermissionDeniedError",
    "ResourceExhaustedError", "ScanPage", "ScannedKey", "Server", "ServerFabric", "TimeoutError", "UnavailableError",
    "Versioned",
]

# Help, messages and pickles name these classes as programs do, for example erda.Client.
for _class in (Client, ScanPage, ScannedKey, Server, ServerFabric, Versioned):
    _class.__module__ = __name__
del _class
