"""The programs and libraries of a build that depend on files of the tree."""

import os
import re
from pathlib import Path

from .step import output_of

PRODUCT = re.compile(r"^((?:tests/\w+_tests|bin/[\w-]+|lib/(?:erda/)?[\w.-]+)): ", re.MULTILINE)
SOURCES = (".h", ".cc", ".c")


def products(build, files):
    """Returns the names of the products of a built folder that depend on any of the files, by what ninja knows. A file
    that is not there any more, and one that describes the build, may concern all of them."""
    listed = PRODUCT.findall(output_of(["ninja", "-C", build, "-t", "targets", "all"]))
    if any(_concerns_all(file) for file in files):
        return {Path(product).name for product in listed}
    objects = _objects_of(build, {os.path.realpath(file) for file in files})
    return {Path(product).name for product in listed
            if objects.intersection(output_of(["ninja", "-C", build, "-t", "inputs", product]).splitlines())}


def _concerns_all(file):
    path = Path(file)
    if path.name in ("CMakeLists.txt", "CMakePresets.json") or path.suffix == ".cmake":
        return True
    return path.suffix in SOURCES and not path.exists()


def _objects_of(build, files):
    """Returns the files, and the objects that the compiler made of them: its sources, and what those include."""
    found = {os.path.relpath(file, build) for file in files} | files
    made = None
    for line in output_of(["ninja", "-C", build, "-t", "deps"]).splitlines():
        if line and not line.startswith(" "):
            made = line.split(":")[0]
        elif line and os.path.realpath(os.path.join(build, line.strip())) in files:
            found.add(made)
    return found
