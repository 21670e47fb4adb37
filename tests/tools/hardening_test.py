"""tools/cmake/hardening.cmake: every library, module and program of the build has the promised protections."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from binaries import binaries, readelf

# Calls of the C library that have a checking form, and that this code uses in every build.
FORTIFIED = re.compile(r"__\w+_chk\b")


def faults_of(binary: pathlib.Path) -> list[str]:
    """Returns the missing protections, and the forbidden properties."""
    header = readelf(binary, "--file-header")
    segments = readelf(binary, "--program-headers")
    dynamic = readelf(binary, "--dynamic")
    symbols = readelf(binary, "--dyn-syms")
    faults = []
    if not re.search(r"Type:\s+DYN ", header):
        faults.append("it has a fixed address")
    if "GNU_RELRO" not in segments:
        faults.append("no RELRO")
    if not re.search(r"BIND_NOW|FLAGS_1\).*\bNOW\b", dynamic):
        faults.append("it is bound lazily")
    stack = re.search(r"GNU_STACK\s+(?:0x\w+\s+){5}([RWE]+)", segments)
    if stack is None or "E" in stack[1]:
        faults.append("its stack is executable")
    if re.search(r"LOAD\s+(?:0x\w+\s+){5}RWE", segments):
        faults.append("a segment is writable and executable")
    if "TEXTREL" in dynamic:
        faults.append("its code is relocated")
    for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
        faults += [f"it searches {part or 'the folder it is started in'}" for part in path.split(":")
                   if part != "$ORIGIN" and not part.startswith("$ORIGIN/")]
    if "__stack_chk_fail" not in symbols:
        faults.append("no stack protector")
    return faults


class EveryBinary(unittest.TestCase):
    def test_the_libraries_are_among_the_binaries(self):
        names = {binary.name.partition(".so")[0] for binary in binaries()}
        self.assertLessEqual({"liberda-client", "liberda-server"}, names)

    def test_is_hardened(self):
        for binary in binaries():
            with self.subTest(binary.name):
                self.assertEqual(faults_of(binary), [])

    def test_calls_the_checking_functions(self):
        for binary in binaries():
            with self.subTest(binary.name):
                found = FORTIFIED.findall(readelf(binary, "--dyn-syms").replace("__stack_chk", ""))
                self.assertEqual(bool(found), os.environ["ERDA_FORTIFIED"] == "ON", found)


class TheTest(unittest.TestCase):
    """The test itself finds each fault."""

    def faults(self, *options: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "some.c")
            source.write_text("#include <stdio.h>\nint main(void) { char b[64]; return fgets(b, 64, stdin) && puts(b); }\n")
            binary = pathlib.Path(folder, "some")
            subprocess.run([os.environ["ERDA_CC"], "-x", "c", source, "-o", binary, *options], check=True)
            return faults_of(binary)

    def test_finds_each_fault(self):
        sound = ["-fPIE", "-pie", "-fstack-protector-strong", "-Wl,-z,relro,-z,now,-z,noexecstack"]
        self.assertEqual(self.faults(*sound, "-Wl,-rpath,$ORIGIN/../lib"), [])
        for option, fault in (
            ("-no-pie", "it has a fixed address"),
            ("-Wl,-z,norelro", "no RELRO"),
            ("-Wl,-z,lazy", "it is bound lazily"),
            ("-Wl,-z,execstack", "its stack is executable"),
            ("-fno-stack-protector", "no stack protector"),
            ("-Wl,-rpath,/somewhere", "it searches /somewhere"),
            ("-Wl,-rpath,$ORIGIN/../lib:here", "it searches here"),
        ):
            with self.subTest(option):
                self.assertIn(fault, self.faults(*sound, option))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
