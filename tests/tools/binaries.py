"""The libraries and programs of the build under test: ERDA_BUILD_DIR."""

import os
import pathlib
import subprocess

BUILD = pathlib.Path(os.environ["ERDA_BUILD_DIR"])


def binaries() -> list[pathlib.Path]:
    libraries = [path for path in (BUILD / "lib").rglob("*.so*") if not path.is_symlink()]
    programs = [path for path in (BUILD / "bin").glob("*") if path.is_file()]
    return sorted(libraries + programs)


def readelf(binary: pathlib.Path, *options: str) -> str:
    command = ["readelf", "--wide", *options, binary]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
