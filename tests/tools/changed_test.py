"""A change selects the tests of each program that depends on it, whatever was built before."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from testing import changed

# As CMake writes it: the compiler's files of dependencies, a joined source, and a shared library.
BUILD = """
rule compile
  command = printf '$out: $needs' > $out.d && touch $out
  depfile = $out.d
  deps = gcc
rule link
  command = cat $in > $out
build one.o: compile ../src/one.cc
  needs = ../src/one.cc ../src/both.h ../src/alone.h
build joined.o: compile joined.cc
  needs = joined.cc ../src/two.cc ../src/both.h
build lone_test.o: compile ../tests/lone_test.cc
  needs = ../tests/lone_test.cc
build tests/one_tests: link one.o
build tests/two_tests: link joined.o
build tests/lone_tests: link lone_test.o
build lib/liberda-client.so.0: link joined.o
build bin/erda-cli: link lone_test.o | lib/liberda-client.so.0
build all: phony tests/one_tests tests/two_tests tests/lone_tests bin/erda-cli
default all
"""
FILES = ("src/one.cc", "src/two.cc", "src/both.h", "src/alone.h", "src/unused.h", "tests/lone_test.cc", "build/joined.cc",
         "docs/page.md", "src/CMakeLists.txt")
OF_PROGRAMS = {"programs", "e2e", "c_api", "examples", "exports", "tools"}


class ChangedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for file in FILES:
            Path(file).parent.mkdir(exist_ok=True)
            Path(file).touch()
        Path("build/build.ninja").write_text(BUILD)
        for product in ("tests", "bin", "lib"):
            Path("build", product).mkdir()
        subprocess.run(["ninja", "-C", "build"], check=True, capture_output=True)

    def test_a_header_selects_the_programs_that_include_it(self):
        self.assertEqual(changed.layers(["src/alone.h"]), {"one"})
        self.assertEqual(changed.layers(["src/both.h"]), {"one", "two"} | OF_PROGRAMS)

    def test_a_source_selects_its_programs_also_if_it_is_joined_with_others(self):
        self.assertEqual(changed.layers(["src/one.cc"]), {"one"})
        self.assertEqual(changed.layers(["src/two.cc"]), {"two"} | OF_PROGRAMS)
        self.assertEqual(changed.layers(["src/one.cc", "src/two.cc"]), {"one", "two"} | OF_PROGRAMS)

    def test_a_program_selects_the_tests_that_start_programs(self):
        self.assertEqual(changed.layers(["tests/lone_test.cc"]), {"lone"} | OF_PROGRAMS)

    def test_what_no_program_uses_selects_none(self):
        self.assertEqual(changed.layers(["src/unused.h"]), set())
        self.assertEqual(changed.layers(["docs/page.md"]), {"tools"})

    def test_a_removed_source_and_the_description_of_the_build_select_all(self):
        everything = {"one", "two", "lone"} | OF_PROGRAMS
        self.assertEqual(changed.layers(["src/CMakeLists.txt"]), everything)
        Path("src/alone.h").unlink()
        self.assertEqual(changed.layers(["src/alone.h"]), everything)


if __name__ == "__main__":
    unittest.main()
