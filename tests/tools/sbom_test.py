"""tools/supply/sbom.py: the list of Erda's parts names the libraries that its binaries load, and the installed
packages, and no others."""

import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from binaries import BUILD, binaries, readelf
from supply import sbom

NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")


def document() -> dict:
    return json.loads((BUILD / "erda.spdx.json").read_text(encoding="utf-8"))


@functools.cache
def files_of(package: str) -> list[str]:
    return sbom.said_by("dpkg-query", "--listfiles", package).splitlines()


def own_name(library: str) -> str:
    return library.partition(".so")[0]


class TheBill(unittest.TestCase):
    def setUp(self):
        self.document = document()
        self.packages = {package["SPDXID"]: package for package in self.document["packages"]}
        self.names = {package["name"]: package for package in self.document["packages"]}

    def related(self, name: str, how: str) -> set[str]:
        """Returns the names that have this relation to a package."""
        one = self.names[name]["SPDXID"]
        return {self.packages[each["relatedSpdxElement"]]["name"] for each in self.document["relationships"]
                if each["spdxElementId"] == one and each["relationshipType"] == how}

    def test_has_the_fields_that_spdx_asks_for(self):
        self.assertEqual(self.document["spdxVersion"], "SPDX-2.3")
        self.assertEqual(self.document["dataLicense"], "CC0-1.0")
        self.assertRegex(self.document["documentNamespace"], r"^https://\S+[^#]$")
        self.assertRegex(self.document["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(len(self.packages), len(self.document["packages"]), "each has its own identifier")
        for package in self.document["packages"]:
            self.assertRegex(package["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            for key in ("name", "versionInfo", "downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"):
                self.assertTrue(package[key], (package["name"], key))
        known = {"SPDXRef-DOCUMENT", *self.packages}
        for each in self.document["relationships"]:
            self.assertLessEqual({each["spdxElementId"], each["relatedSpdxElement"]}, known)

    def test_names_erda_and_its_binaries(self):
        erda = self.names["erda"]
        describes = [each["relatedSpdxElement"] for each in self.document["relationships"]
                     if each["relationshipType"] == "DESCRIBES"]
        self.assertEqual(describes, [erda["SPDXID"]])
        self.assertEqual(erda["licenseDeclared"], "Apache-2.0")
        self.assertIn(f"VERSION {erda['versionInfo']} ", (sbom.SOURCE / "CMakeLists.txt").read_text(encoding="utf-8"))
        self.assertEqual(self.related("erda", "CONTAINS"), {own_name(binary.name) for binary in binaries()})
        for binary in binaries():
            checksum = self.names[own_name(binary.name)]["checksums"][0]
            self.assertEqual(checksum["algorithm"], "SHA256")
            self.assertEqual(checksum["checksumValue"], hashlib.sha256(binary.read_bytes()).hexdigest(), binary.name)

    def test_names_only_the_libraries_that_each_binary_loads(self):
        for binary in binaries():
            with self.subTest(binary.name):
                expected = set()
                for library in NEEDED.findall(readelf(binary, "--dynamic")):
                    own = own_name(library) in self.related("erda", "CONTAINS")
                    expected.add(own_name(library) if own else self.package_with(library))
                self.assertEqual(self.related(own_name(binary.name), "DYNAMIC_LINK"), expected)

    def package_with(self, library: str) -> str:
        """Returns the listed package that has this library, by the files that dpkg knows of each."""
        owners = [name for name, package in self.names.items() if "externalRefs" in package and
                  any(file.endswith(f"/{library}") for file in files_of(name))]
        self.assertEqual(len(owners), 1, f"{library}: {owners}")
        return owners[0]

    def test_names_the_headers_that_are_compiled_in(self):
        erda = self.names["erda"]["SPDXID"]
        built_of = {self.packages[each["spdxElementId"]]["name"] for each in self.document["relationships"]
                    if each["relationshipType"] == "BUILD_DEPENDENCY_OF" and each["relatedSpdxElement"] == erda}
        self.assertEqual(built_of, {"libcli11-dev", "nlohmann-json3-dev", "libtomlplusplus-dev"})

    def test_has_the_versions_that_are_installed_and_a_license_of_each(self):
        others = [package for package in self.document["packages"] if not package["SPDXID"].startswith("SPDXRef-Erda-")]
        self.assertGreaterEqual(len(others), 11)
        for package in others:
            version = sbom.said_by("dpkg-query", "--show", "--showformat", "${Version}\n", package["name"]).splitlines()[0]
            self.assertEqual(package["versionInfo"], version, package["name"])
            self.assertNotEqual(package["licenseConcluded"], "NOASSERTION", package["name"])
            self.assertIn(package["name"].replace("+", "%2B"), package["externalRefs"][0]["referenceLocator"])


class TheScript(unittest.TestCase):
    def run_it(self, **environment: str) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "out.json")
            command = [sys.executable, sbom.__file__, "--version", "1.2.3", "--out", out, *binaries()]
            subprocess.run(command, check=True, env={**os.environ, **environment})
            return out.read_bytes()

    def test_writes_the_same_bytes_each_time(self):
        first = self.run_it(SOURCE_DATE_EPOCH="1700000000")
        self.assertEqual(self.run_it(SOURCE_DATE_EPOCH="1700000000"), first)
        self.assertEqual(json.loads(first)["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        later = json.loads(self.run_it(SOURCE_DATE_EPOCH="1700000001"))
        self.assertEqual(later["documentNamespace"], json.loads(first)["documentNamespace"])

    def test_without_dpkg_takes_versions_from_pkg_config(self):
        bill = sbom.Bill("1.2.3")
        bill.add_other(sbom.LOADED["libsodium"], "")
        (package,) = bill.packages.values()
        self.assertEqual(package["name"], "libsodium")
        self.assertEqual(package["versionInfo"], sbom.said_by("pkg-config", "--modversion", "libsodium"))
        self.assertNotIn("externalRefs", package)

    def test_an_unknown_library_is_named(self):
        bill = sbom.Bill("1.2.3")
        bill.add_other(sbom.Known("libodd.so.1", "NOASSERTION"), sbom.owner_of("libodd.so.1"))
        (package,) = bill.packages.values()
        self.assertEqual((package["name"], package["versionInfo"]), ("libodd.so.1", "NOASSERTION"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
