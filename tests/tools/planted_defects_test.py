"""Each planted defect of src/base/planted.h has its row in docs/simulation.md, and a seed that is tried first."""

from __future__ import annotations

import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).parents[2]


def lines_between(text: str, begin: str, end: str) -> str:
    return text.split(begin, 1)[1].split(end, 1)[0]


class PlantedDefects(unittest.TestCase):
    def setUp(self) -> None:
        header = (SOURCE / "src/base/planted.h").read_text()
        names = re.findall(r'"([a-z-]+)"', lines_between(header, "kFlawNames[] = {", "};"))
        self.assertEqual(names[0], "none")
        self.names = names[1:]
        self.assertGreater(len(self.names), 50)

    def test_the_document_has_a_row_for_each(self) -> None:
        document = (SOURCE / "docs/simulation.md").read_text()
        tables = lines_between(document, "### Of the server", "### Defects that are not planted")
        rows = re.findall(r"^\| ([a-z-]+) \| ", tables, re.MULTILINE)
        self.assertEqual(sorted(row for row in rows if row != "defect"), sorted(self.names))

    def test_each_has_a_seed(self) -> None:
        seeds = (SOURCE / "tests/regression/planted_seeds").read_text()
        self.assertEqual(re.findall(r"^([a-z-]+) +\d+$", seeds, re.MULTILINE), self.names)


if __name__ == "__main__":
    unittest.main()
