"""Where made-up figures of tools/compare come from."""


def origin(versions: dict, servers: dict, file_system: str = "ext4") -> dict:
    """Returns an origin like that of a real run. Its texts have signs that HTML must escape."""
    return {"machine": {"processor": "P", "processors": 2, "memory_bytes": 2**34, "virtual": False, "kernel": "6.1", "system": "S",
                        "load_average": 0.5, "time": "2026-01-01 00:00 UTC"},
            "commit": {"hash": "a" * 40, "date": "d", "changed_files": 0}, "file_system": file_system,
            "versions": versions, "command": "tools/compare", "servers": servers}
