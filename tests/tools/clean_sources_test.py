"""A source that clang-tidy found clean is checked again after each change that could matter, and after no other."""

import os
import tempfile
import unittest
from pathlib import Path

from testing import analysis
from testing.clean import CleanSources

COMMAND = "clang++ -I{root}/src -I/usr/include/none -c {root}/src/a/user.cc"
FILES = {
    ".clang-tidy": "Checks: -*",
    "src/a/user.cc": '#include <vector>\n#include "base/outer.h"\n',
    "src/base/outer.h": '  #  include "near.h"\n',
    "src/base/near.h": "int x;\n",
    "src/base/other.h": "int y;\n",
}


class OptionsTest(unittest.TestCase):
    def test_a_value_in_quotes_stays_whole(self):
        define = r'-DBUILD="\"Clang 14, Debug, each file alone\""'
        command = rf'clang++ {define} -DX=\"1\" -isystem /usr/x -I/src -Wall -O1 -c /a.cc'
        self.assertEqual(analysis._options_of([command, command]),
                         [define, r'-DX=\"1\"', "-isystem /usr/x", "-I/src", "-Wall"])


class CleanSourcesTest(unittest.TestCase):
    def setUp(self):
        self._before = os.getcwd()
        self._top = tempfile.TemporaryDirectory()
        self.addCleanup(self._top.cleanup)
        self.addCleanup(os.chdir, self._before)
        self._cache = Path(self._top.name, "cache")

    def key(self, clone="one", changes=None, options=("--checks=x",), define=""):
        """Returns the key of the source in a clone whose files have these changes."""
        root = Path(os.path.realpath(self._top.name), clone)
        for name, text in {**FILES, **(changes or {})}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        os.chdir(root)
        self.clean = CleanSources(self._cache)
        return self.clean.key("src/a/user.cc", COMMAND.format(root=root) + define, list(options))

    def test_clones_share_their_keys(self):
        key = self.key("one")
        self.assertFalse(self.clean.has(key))
        self.clean.add(key)
        self.assertEqual(self.key("two"), key)
        self.assertTrue(self.clean.has(key))

    def test_each_change_that_matters_gives_another_key(self):
        keys = [self.key(),
                self.key("source", {"src/a/user.cc": FILES["src/a/user.cc"] + "int z;\n"}),
                self.key("direct", {"src/base/outer.h": FILES["src/base/outer.h"] + "int z;\n"}),
                self.key("through", {"src/base/near.h": "int z;\n"}),
                self.key("shadow", {"src/a/near.h": "", "src/base/outer.h": '#include "../a/near.h"\n'}),
                self.key("configuration", {".clang-tidy": "Checks: '*'"}),
                self.key("options", options=("--checks=y",)),
                self.key("command", define=" -DX")]
        self.assertEqual(len(set(keys)), len(keys))

    def test_a_change_during_the_look_gives_another_key(self):
        key = self.key()
        command = COMMAND.format(root=os.getcwd())
        self.assertEqual(self.clean.again("src/a/user.cc", command, ["--checks=x"]), key)
        Path("src/base/near.h").write_text("int z;\n")
        self.assertEqual(self.clean.key("src/a/user.cc", command, ["--checks=x"]), key)
        self.assertNotEqual(self.clean.again("src/a/user.cc", command, ["--checks=x"]), key)

    def test_other_files_do_not_matter(self):
        self.assertEqual(self.key("one"), self.key("two", {"src/base/other.h": "int z;\n", "README.md": "x"}))


if __name__ == "__main__":
    unittest.main()
