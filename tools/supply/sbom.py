#!/usr/bin/env python3
"""Writes the parts of Erda as SPDX 2.3 in JSON: its libraries and programs, and packages of the system.

These are the packages whose libraries the programs load, and those whose headers are compiled into them. The build
calls this script, when all is linked.

The same binaries, packages and commit give the same bytes.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import functools
import hashlib
import json
import os
import pathlib
import platform
import re
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


@dataclasses.dataclass(frozen=True)
class Known:
    """A library that may be loaded, by its name without a version; or headers, which the build compiles in."""

    name: str
    license: str
    pkg_config: str = ""
    debian: str = ""  # Of headers. For a library the system knows the package.


GCC = "GPL-3.0-or-later WITH GCC-exception-3.1"
RDMA = "GPL-2.0-only OR Linux-OpenIB"
LOADED = {
    "libisal": Known("isa-l", "BSD-3-Clause", "libisal"),
    "libpmem": Known("pmdk-libpmem", "BSD-3-Clause", "libpmem"),
    "libsodium": Known("libsodium", "ISC", "libsodium"),
    "libzstd": Known("zstd", "BSD-3-Clause OR GPL-2.0-only", "libzstd"),
    "libibverbs": Known("libibverbs", RDMA, "libibverbs"),
    "librdmacm": Known("librdmacm", RDMA, "librdmacm"),
    "libfmt": Known("fmt", "MIT", "fmt"),
    "libspdlog": Known("spdlog", "MIT", "libspdlog"),
    "libhiredis": Known("hiredis", "BSD-3-Clause", "hiredis"),
    "libmemcached": Known("libmemcached", "BSD-3-Clause", "libmemcached"),
    "liblmdb": Known("lmdb", "OLDAP-2.8", "lmdb"),
    "libtkrzw": Known("tkrzw", "Apache-2.0", "tkrzw"),
    "librocksdb": Known("rocksdb", "GPL-2.0-only OR Apache-2.0", "rocksdb"),
    "libstdc++": Known("libstdc++", GCC),
    "libgcc_s": Known("libgcc", GCC),
    "libc": Known("glibc", "LGPL-2.1-or-later"),
    "libm": Known("glibc", "LGPL-2.1-or-later"),
    "ld-linux-x86-64": Known("glibc", "LGPL-2.1-or-later"),
    "ld-linux-aarch64": Known("glibc", "LGPL-2.1-or-later"),
}
FOR_PROGRAMS = (
    Known("cli11", "BSD-3-Clause", "CLI11", "libcli11-dev"),
    Known("nlohmann-json", "MIT", "nlohmann_json", "nlohmann-json3-dev"),
    Known("tomlplusplus", "MIT", "tomlplusplus", "libtomlplusplus-dev"),
)


def said_by(*command: str) -> str:
    """Returns the output of a command, or an empty string if it fails or does not exist."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except OSError:
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


def loaded_by(readelf: str, binary: pathlib.Path) -> list[str]:
    """Returns the names of the libraries that a binary asks for."""
    dynamic = subprocess.run([readelf, "--dynamic", "--wide", binary], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.+)\]", dynamic)


@functools.cache
def owner_of(library: str) -> str:
    """Returns the Debian package of a library of this machine's architecture."""
    place = rf"(/usr)?/lib(64)?/({platform.machine()}-linux-gnu/)?[^/]+"
    for line in said_by("dpkg-query", "--search", f"*/{library}").splitlines():
        package, _, path = line.partition(": ")
        if re.fullmatch(place, path):
            return package.split(",")[0].partition(":")[0]
    return ""


def moment() -> str:
    """Returns SOURCE_DATE_EPOCH. Otherwise returns the time of the commit, or that of the license file's last change.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or said_by("git", "-C", str(SOURCE), "log", "-1", "--format=%ct")
    at = int(seconds) if seconds else int((SOURCE / "LICENSE").stat().st_mtime)
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def identifier(kind: str, name: str) -> str:
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


class Bill:
    def __init__(self, version: str) -> None:
        self.version = version
        self.packages: dict[str, dict] = {}
        self.relationships: set[tuple[str, str, str]] = set()

    def add_own(self, name: str, purpose: str, file: pathlib.Path | None = None) -> str:
        package = {
            "SPDXID": identifier("Erda", name),
            "name": name,
            "versionInfo": self.version,
            "supplier": "NOASSERTION",
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": "Apache-2.0",
            "licenseDeclared": "Apache-2.0",
            "copyrightText": "NOASSERTION",
            "primaryPackagePurpose": purpose,
        }
        if file is not None:
            package["packageFileName"] = file.name
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            package["checksums"] = [{"algorithm": "SHA256", "checksumValue": digest}]
        self.packages[package["SPDXID"]] = package
        return package["SPDXID"]

    def add_other(self, known: Known, debian: str) -> str:
        """Adds a package of the system, with its installed version."""
        said = said_by("dpkg-query", "--show", "--showformat", "${Version} ${Architecture}\n", debian) if debian else ""
        version, architecture = said.splitlines()[0].split() if said else ("", "")
        if not version and known.pkg_config:
            version = said_by("pkg-config", "--modversion", known.pkg_config)
        package = {
            "SPDXID": identifier("Package", debian or known.name),
            "name": debian or known.name,
            "versionInfo": version or "NOASSERTION",
            "supplier": "Organization: Debian" if architecture else "NOASSERTION",
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": known.license,
            "licenseDeclared": known.license,
            "copyrightText": "NOASSERTION",
            "primaryPackagePurpose": "LIBRARY",
            "comment": known.name,
        }
        if architecture:
            locator = f"pkg:deb/debian/{debian.replace('+', '%2B')}@{version.replace('+', '%2B')}?arch={architecture}"
            package["externalRefs"] = [
                {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}
            ]
        self.packages[package["SPDXID"]] = package
        return package["SPDXID"]

    def relate(self, one: str, how: str, other: str) -> None:
        self.relationships.add((one, how, other))

    def document(self) -> dict:
        packages = [self.packages[key] for key in sorted(self.packages)]
        relationships = [
            {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}
            for one, how, other in sorted(self.relationships)
        ]
        content = json.dumps([packages, relationships], sort_keys=True).encode()
        return {
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"erda-{self.version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/erda-{self.version}-{hashlib.sha256(content).hexdigest()}",
            "creationInfo": {"created": moment(), "creators": ["Tool: erda-sbom"]},
            "packages": packages,
            "relationships": relationships,
        }


def bill_of(version: str, readelf: str, binaries: list[pathlib.Path]) -> dict:
    bill = Bill(version)
    erda = bill.add_own("erda", "APPLICATION")
    bill.relate("SPDXRef-DOCUMENT", "DESCRIBES", erda)
    own_libraries = {}
    loads = {}
    for binary in sorted(binaries):
        is_library = ".so" in binary.name
        name = binary.name.partition(".so")[0]
        own = bill.add_own(name, "LIBRARY" if is_library else "APPLICATION", binary)
        bill.relate(erda, "CONTAINS", own)
        if is_library:
            own_libraries[name] = own
        loads[own] = loaded_by(readelf, binary)
    for headers in FOR_PROGRAMS if len(own_libraries) < len(loads) else ():
        bill.relate(bill.add_other(headers, headers.debian), "BUILD_DEPENDENCY_OF", erda)
    for own, libraries in loads.items():
        for library in libraries:
            name = library.partition(".so")[0]
            if name in own_libraries:
                bill.relate(own, "DYNAMIC_LINK", own_libraries[name])
                continue
            # Some have their version in their name, such as libx-1.2.so. But ld-linux-x86-64 does not.
            known = LOADED.get(name) or LOADED.get(re.sub(r"-[0-9.]+$", "", name)) or Known(library, "NOASSERTION")
            bill.relate(own, "DYNAMIC_LINK", bill.add_other(known, owner_of(library)))
    return bill.document()


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes what Erda is made of, as SPDX 2.3.")
    parser.add_argument("--version", required=True)
    parser.add_argument("--readelf", default="readelf")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("binaries", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    document = bill_of(arguments.version, arguments.readelf, arguments.binaries)
    arguments.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
