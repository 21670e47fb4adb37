"""docs/design.md, "A put, a get and an arriving message, step by step": each function is defined in its file.

A step is an item of a numbered list: 1. `src/file.cc`, `Class::Function`: a sentence.
"""

from __future__ import annotations

import pathlib
import re
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).parents[2]
TITLE = "A put, a get and an arriving message, step by step"
ITEM = re.compile(r"(\d+)\. ")
STEP = re.compile(r"(\d+)\. `(src/[\w/.]+)`, `([\w:]+)`: \S")
# Matches the text between the parameters of a definition and its body.
BODY = re.compile(r"\s*(?:(?:const|noexcept|override|final|try)\b\s*)*(?:->[^;{}]*)?\{")
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])\'', re.DOTALL)


def section(document: str) -> str:
    """Returns the text below the section's title, up to the next title of its level. Returns an empty string without
    the section."""
    found = re.search(rf"^## {re.escape(TITLE)}\n(.*?)(?=^## |\Z)", document, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


def end_of(text: str, begin: int, pair: str) -> int:
    """Returns the place after the bracket that closes the one at begin."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] == pair[0]) - (text[at] == pair[1])
        if depth == 0:
            return at + 1
    return len(text)


def is_defined(code: str, name: str) -> bool:
    calls = re.finditer(rf"(?<![\w:.~]){name}(?=\()", code)
    return any(BODY.match(code, end_of(code, call.end(), "()")) for call in calls if code[:call.start()][-2:] != "->")


def defines(source: str, name: str) -> bool:
    """Whether the source defines the function, by its whole name or inside its class."""
    code = NOT_CODE.sub(" ", source)
    if is_defined(code, name):
        return True
    owner, _, function = name.rpartition("::")
    if not owner:
        return False
    for head in re.finditer(rf"\b(?:class|struct) {owner}\b[^;{{()]*(?=\{{)", code):
        if is_defined(code[head.end() : end_of(code, head.end(), "{}")], function):
            return True
    return False


def offences(document: str, root: pathlib.Path) -> list[str]:
    text = section(document)
    if not text:
        return [f"there is no section {TITLE!r}"]
    found = []
    lists = 0
    last = 0
    for line in text.splitlines():
        if line.startswith("#"):
            last = 0
        if not (item := ITEM.match(line)):
            continue
        number = int(item[1])
        lists += number == 1
        if number not in (1, last + 1):
            found.append(f"step {number} follows step {last}")
        last = number
        step = STEP.match(line)
        if not step:
            found.append(f"not a step: {line}")
        elif not (root / step[2]).is_file():
            found.append(f"there is no file {step[2]}")
        elif not defines((root / step[2]).read_text(), step[3]):
            found.append(f"{step[2]} does not define {step[3]}")
    if lists < 3:
        found.append(f"{lists} lists, fewer than 3")
    return found


class CheckerTest(unittest.TestCase):
    CODE = ("// void Shard::Gone() {}\n"
            "void Shard::Poll(int n) {\n  if (Shard::Called(n)) {\n  }\n  queue_->Other(n);\n}\n"
            "void Shard::Declared(int n);\n"
            "class Ring : Base {\n public:\n  bool Push(int n) const {\n    return Full(n);\n  }\n  bool Peek();\n};\n"
            "constexpr int Decide(const Facts& facts) {\n  return 1;\n}\n"
            "auto Shard::Find() -> int try { return 1; }\n")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="erda-line.")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "src").mkdir()
        (self.root / "src/a.cc").write_text(self.CODE)

    @staticmethod
    def document(*lists):
        parts = [f"### List\n\n{text}\n" for text in lists]
        return f"# Design\n\n## {TITLE}\n\n" + "\n".join(parts) + "\n## Next\n\n1. no step\n"

    def check(self, *lists):
        return offences(self.document(*lists), self.root)

    def test_finds_definitions(self):
        for name in ("Shard::Poll", "Ring::Push", "Decide", "Shard::Find"):
            self.assertTrue(defines(self.CODE, name), name)

    def test_a_call_a_declaration_and_a_comment_are_no_definitions(self):
        for name in ("Shard::Gone", "Shard::Called", "Shard::Declared", "Ring::Peek", "Ring::Full", "Shard::Push",
                     "Other", "Poll", "Shard::Pol"):
            self.assertFalse(defines(self.CODE, name), name)

    def test_right_names_pass(self):
        step = "1. `src/a.cc`, `Shard::Poll`: The shard polls.\n2. `src/a.cc`, `Ring::Push`: The ring takes\n   a word."
        self.assertEqual(self.check(step, step, step), [])

    def test_a_wrong_name_is_found(self):
        good = "1. `src/a.cc`, `Shard::Poll`: The shard polls."
        self.assertEqual(self.check(good, good, "1. `src/a.cc`, `Shard::Pull`: The shard pulls."),
                         ["src/a.cc does not define Shard::Pull"])
        self.assertEqual(self.check(good, good, "1. `src/b.cc`, `Shard::Poll`: The shard polls."),
                         ["there is no file src/b.cc"])

    def test_a_wrong_shape_is_found(self):
        good = "1. `src/a.cc`, `Shard::Poll`: The shard polls."
        self.assertEqual(self.check(good, good), ["2 lists, fewer than 3"])
        self.assertEqual(self.check(good, good, good, "1. The shard polls."), ["not a step: 1. The shard polls."])
        self.assertEqual(self.check(good, good, good + "\n3" + good[1:]), ["step 3 follows step 1"])
        self.assertEqual(offences("# Design\n", self.root), [f"there is no section {TITLE!r}"])


class DesignTest(unittest.TestCase):
    def test_each_named_function_is_defined_in_its_file(self):
        self.assertEqual(offences((SOURCE / "docs/design.md").read_text(), SOURCE), [])


if __name__ == "__main__":
    unittest.main()
