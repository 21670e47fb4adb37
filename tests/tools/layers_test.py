"""docs/design.md, "Folders": the sources include other folders only in the order that the document gives.

A line of that order is: src/parent/  first < second, third < fourth. A dot stands for the files of the parent itself.
"""

from __future__ import annotations

import pathlib
import re
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).parents[2]
ORDER = re.compile(r"^(src/(?:\w+/)*) +(\S+(?:(?: < |, )\S+)+)$", re.MULTILINE)
INCLUDE = re.compile(r'^ *# *include "([\w./-]+)"', re.MULTILINE)


def orders(document: str) -> dict[str, dict[str, int]]:
    """Returns the rank of each folder below each parent."""
    return {parent: {folder: rank for rank, folders in enumerate(line.split(" < ")) for folder in folders.split(", ")}
            for parent, line in ORDER.findall(document)}


def folder_of(path: str, parent: str) -> str:
    """Returns the folder below the parent that has the path, or a dot if the parent itself has it."""
    first, slash, _ = path.removeprefix(parent).partition("/")
    return first if slash else "."


def offences(document: str, root: pathlib.Path) -> list[str]:
    found = []
    for parent, rank in orders(document).items():
        files = sorted(path for path in (root / parent).rglob("*") if path.suffix in (".h", ".cc"))
        present = {folder_of(str(file.relative_to(root)), parent) for file in files}
        found += [f"{parent}{folder} is not in the order" for folder in sorted(present - rank.keys())]
        found += [f"{parent}{folder} has no sources" for folder in sorted(rank.keys() - present)]
        for file in files:
            name = str(file.relative_to(root))
            own = folder_of(name, parent)
            for included in INCLUDE.findall(file.read_text()):
                other = folder_of(f"src/{included}", parent)
                if not (root / "src" / included).is_file() or not f"src/{included}".startswith(parent) or other == own:
                    continue
                if own in rank and other in rank and rank[other] >= rank[own]:
                    found.append(f"{name} includes {included}")
    return found


class CheckerTest(unittest.TestCase):
    DOCUMENT = "```text\nsrc/    a < b, c < d\nsrc/d/  low < high < .\n```\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="erda-layers.")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for file in ("a/a.h", "b/b.h", "c/c.h", "d/d.h", "d/low/l.h", "d/high/h.h"):
            self.write(file, "")

    def write(self, file, *included):
        path = self.root / "src" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f'#include "{name}"\n' for name in included))

    def check(self):
        return offences(self.DOCUMENT, self.root)

    def test_reads_the_order(self):
        self.assertEqual(orders(self.DOCUMENT), {"src/": {"a": 0, "b": 1, "c": 1, "d": 2},
                                                 "src/d/": {"low": 0, "high": 1, ".": 2}})

    def test_earlier_folders_the_same_folder_and_other_names_pass(self):
        self.write("b/b.cc", "b/b.h", "a/a.h", "erda/erda.h", "gone/gone.h")
        self.write("d/d.cc", "d/d.h", "a/a.h", "c/c.h", "d/low/l.h", "d/high/h.h")
        self.write("d/high/h.cc", "d/high/h.h", "d/low/l.h", "b/b.h")
        self.assertEqual(self.check(), [])

    def test_a_later_folder_is_found(self):
        self.write("a/a.cc", "b/b.h")
        self.write("d/low/l.cc", "d/high/h.h")
        self.write("d/high/h.cc", "d/d.h")
        self.assertEqual(self.check(), ["src/a/a.cc includes b/b.h", "src/d/high/h.cc includes d/d.h",
                                        "src/d/low/l.cc includes d/high/h.h"])

    def test_a_folder_beside_is_found(self):
        self.write("b/b.cc", "c/c.h")
        self.write("c/c.cc", "b/b.h")
        self.assertEqual(self.check(), ["src/b/b.cc includes c/c.h", "src/c/c.cc includes b/b.h"])

    def test_a_folder_without_a_place_and_a_place_without_a_folder_are_found(self):
        self.write("e/e.h")
        (self.root / "src/d/low/l.h").unlink()
        self.assertEqual(self.check(), ["src/e is not in the order", "src/d/low has no sources"])


class DesignTest(unittest.TestCase):
    def test_each_include_keeps_the_order(self):
        document = (SOURCE / "docs/design.md").read_text()
        self.assertEqual(list(orders(document)), ["src/", "src/server/"])
        self.assertEqual(offences(document, SOURCE), [])


if __name__ == "__main__":
    unittest.main()
