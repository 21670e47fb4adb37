"""Sources that are joined to one keep their places, and each include stays once."""

import tempfile
import unittest
from pathlib import Path

from testing.pasted import Pasted


class PastedTest(unittest.TestCase):
    def _pasted(self, *texts):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        members = []
        for number, text in enumerate(texts):
            members.append(f"{folder.name}/{number}.cc")
            Path(members[-1]).write_text(text)
        return Pasted(members)

    def test_an_include_of_an_earlier_source_is_left_out(self):
        pasted = self._pasted('#include <a>\n#include "b.h"\nint x;\n', '#include "b.h"\n#include <c>\nint y;\n')
        self.assertEqual(pasted.text, '#include <a>\n#include "b.h"\nint x;\n\n#include <c>\nint y;\n')

    def test_an_include_that_one_source_has_twice_stays(self):
        self.assertEqual(self._pasted("#include <a>\n#include <a>\n").text, "#include <a>\n#include <a>\n")

    def test_an_include_under_a_condition_stays(self):
        pasted = self._pasted("#include <a>\n", "#ifdef X\n#include <a>\n#endif\n#include <a>\n")
        self.assertEqual(pasted.text,
                         "#include <a>\n#ifdef X\n#include <a>  // NOLINT(readability-duplicate-include)\n#endif\n\n")
        pasted = self._pasted("#if X\n#include <a>\n#endif\n", "#include <a>\n")
        self.assertTrue(pasted.text.endswith("#endif\n#include <a>  // NOLINT(readability-duplicate-include)\n"))

    def test_places_in_an_output_are_those_of_the_sources(self):
        pasted = self._pasted("1\n2\n", "3\n")
        first, second = pasted.members
        self.assertEqual(pasted.located("/r/joined.cc:2:7: error: x\n/r/joined.cc:3: y", "/r/joined.cc"),
                         f"{first}:2:7: error: x\n{second}:1: y")
        self.assertEqual(pasted.located("src/other.cc:3: z", "/r/joined.cc"), "src/other.cc:3: z")


if __name__ == "__main__":
    unittest.main()
