"""docs/design.md, "A put, a get and an arriving message, step by step": each function is defined in its file, and the
lists have no gaps.

A step is an item of a numbered list: 1. `src/file.cc`, `Class::Function`: a sentence. The code of the step before it,
or of an earlier step that has not returned, calls the function. A step that no other step calls says what starts it:
1. `src/file.cc`, `Class::Function`, started by the server's loop: a sentence.
"""

from __future__ import annotations

import pathlib
import re
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).parents[2]
TITLE = "A put, a get and an arriving message, step by step"
ITEM = re.compile(r"(\d+)\. ")
STEP = re.compile(r"(\d+)\. `(src/[\w/.]+)`, `([\w:]+)`(, started by the (?:client|server)'s (?:loop|queue))?: \S")
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


def definitions(code: str, name: str) -> list[str]:
    """Returns the bodies of the functions that the code defines by this name."""
    found = []
    for call in re.finditer(rf"(?<![\w:.~]){name}(?=\()", code):
        body = BODY.match(code, end_of(code, call.end(), "()"))
        if body and code[:call.start()][-2:] != "->":
            found.append(code[body.end() - 1 : end_of(code, body.end() - 1, "{}")])
    return found


def bodies(source: str, name: str) -> list[str]:
    """Returns the bodies of the function's definitions, by its whole name or inside its class."""
    code = NOT_CODE.sub(" ", source)
    found = definitions(code, name)
    owner, _, function = name.rpartition("::")
    for head in re.finditer(rf"\b(?:class|struct) {owner}\b[^;{{()]*(?=\{{)", code) if owner else ():
        found += definitions(code[head.end() : end_of(code, head.end(), "{}")], function)
    return found


def calls(code: list[str], name: str) -> bool:
    """Whether one of the bodies calls a function whose last name is that of `name`."""
    function = name.rpartition("::")[2]
    return any(re.search(rf"(?<!\w){function}\(", body) for body in code)


class Line:
    """The steps of one list that have not returned: each is called by the one before it."""

    def __init__(self) -> None:
        self.running: list[tuple[str, list[str]]] = []

    def step(self, name: str, code: list[str], start: str | None) -> str | None:
        """Takes the next step. Returns its fault, or None."""
        callers = [i for i, (_, body) in enumerate(self.running) if calls(body, name)]
        first = not self.running
        fault = None
        if start and (first or calls(self.running[-1][1], name)):
            fault = f"{name} needs no mark, since " + ("it is the first step" if first else "the step before calls it")
        elif not start and not first and not callers:
            fault = f"{name} is called by none of " + ", ".join(before for before, _ in self.running)
        if start or first:
            self.running = []
        elif callers:
            del self.running[callers[-1] + 1 :]
        self.running.append((name, code))
        return fault


def offences(document: str, root: pathlib.Path) -> list[str]:
    text = section(document)
    if not text:
        return [f"there is no section {TITLE!r}"]
    found = []
    lists = 0
    last = 0
    steps = Line()
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
        if number == 1:
            steps = Line()
        step = STEP.match(line)
        if not step:
            found.append(f"not a step: {line}")
        elif not (root / step[2]).is_file():
            found.append(f"there is no file {step[2]}")
        elif not (code := bodies((root / step[2]).read_text(), step[3])):
            found.append(f"{step[2]} does not define {step[3]}")
        elif fault := steps.step(step[3], code, step[4]):
            found.append(f"step {number}: {fault}")
    if lists < 3:
        found.append(f"{lists} lists, fewer than 3")
    return found


class Fixture(unittest.TestCase):
    CODE = ("// void Shard::Gone() {}\n"
            "void Shard::Poll(int n) {\n  if (Shard::Called(n)) {\n  }\n  ring_.Push(n);\n  queue_->Other(n);\n}\n"
            "void Shard::Declared(int n);\n"
            "class Ring : Base {\n public:\n  bool Push(int n) const {\n    return Full(n);\n  }\n  bool Peek();\n};\n"
            "constexpr int Decide(const Facts& facts) {\n  return 1;\n}\n"
            "auto Shard::Find() -> int try { return Decide(facts); }\n"
            "void Shard::Run() { Find(); Poll(1); }\n")

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


class CheckerTest(Fixture):
    def test_finds_definitions(self):
        for name in ("Shard::Poll", "Ring::Push", "Decide", "Shard::Find"):
            self.assertTrue(bodies(self.CODE, name), name)

    def test_a_call_a_declaration_and_a_comment_are_no_definitions(self):
        for name in ("Shard::Gone", "Shard::Called", "Shard::Declared", "Ring::Peek", "Ring::Full", "Shard::Push",
                     "Other", "Poll", "Shard::Pol"):
            self.assertFalse(bodies(self.CODE, name), name)

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
        self.assertEqual(self.check(good, good, good + "\n3. `src/a.cc`, `Ring::Push`: The ring takes a word."),
                         ["step 3 follows step 1"])
        self.assertEqual(offences("# Design\n", self.root), [f"there is no section {TITLE!r}"])


class CallTest(Fixture):
    """Of steps that call each other: Run calls Find and Poll, Find calls Decide, and Poll calls Push."""

    def line(self, *steps):
        items = [f"{i}. `src/a.cc`, `{step.replace(',', '`,', 1) if ',' in step else step + '`'}: The shard works."
                 for i, step in enumerate(steps, 1)]
        good = "1. `src/a.cc`, `Shard::Poll`: The shard polls."
        return self.check(good, good, "\n".join(items))

    def test_steps_that_call_the_next_ones_pass(self):
        self.assertEqual(self.line("Shard::Run", "Shard::Find", "Decide", "Shard::Poll", "Ring::Push"), [])

    def test_a_gap_is_found(self):
        self.assertEqual(self.line("Shard::Run", "Ring::Push"), ["step 2: Ring::Push is called by none of Shard::Run"])

    def test_a_step_that_has_returned_calls_nothing(self):
        self.assertEqual(self.line("Shard::Run", "Shard::Find", "Shard::Poll", "Decide"),
                         ["step 4: Decide is called by none of Shard::Run, Shard::Poll"])

    def test_part_of_a_name_is_no_call(self):
        self.assertFalse(calls(["{ PrepareHere(key); UnPrepare(key); Prepare; }"], "Puts::Prepare"))
        self.assertTrue(calls(["{ return puts_->Prepare(key); }"], "Puts::Prepare"))

    def test_a_mark_is_needed_where_no_step_calls(self):
        self.assertEqual(self.line("Decide", "Shard::Run, started by the server's loop", "Shard::Poll"), [])
        self.assertEqual(self.line("Decide", "Shard::Run"), ["step 2: Shard::Run is called by none of Decide"])
        self.assertEqual(self.line("Shard::Run", "Shard::Poll, started by the server's loop"),
                         ["step 2: Shard::Poll needs no mark, since the step before calls it"])
        self.assertEqual(self.line("Shard::Run, started by the client's queue"),
                         ["step 1: Shard::Run needs no mark, since it is the first step"])
        self.assertEqual(len(self.line("Decide", "Shard::Run, started by magic")), 1)

    def test_a_list_goes_on_from_no_other_list(self):
        step = "1. `src/a.cc`, `Decide`: The shard works."
        self.assertEqual(self.check(step, step.replace("Decide", "Shard::Run"), step), [])


class DesignTest(unittest.TestCase):
    DOCUMENT = (SOURCE / "docs/design.md").read_text()

    def faults(self, change):
        """Returns the faults after `change` has changed the list of steps of a put."""
        begin = self.DOCUMENT.index("1. `src/client/client.cc`, `Client::Put`")
        end = self.DOCUMENT.index("### A get")
        steps = re.split(r"(?m)^\d+\. ", self.DOCUMENT[begin:end])[1:]
        changed = "".join(f"{i}. {step}" for i, step in enumerate(change(steps), 1))
        return offences(self.DOCUMENT[:begin] + changed + self.DOCUMENT[end:], SOURCE)

    def renamed(self, old, new):
        found = self.faults(lambda steps: [step.replace(f"`{old}`", f"`{new}`", 1) for step in steps])
        self.assertNotEqual(self.DOCUMENT, self.DOCUMENT.replace(f"`{old}`", f"`{new}`"))
        return found

    def test_each_step_is_defined_and_called(self):
        self.assertEqual(offences(self.DOCUMENT, SOURCE), [])
        self.assertEqual(self.faults(lambda steps: steps), [])

    def test_a_function_for_other_puts_is_found(self):
        self.assertIn("Puts::Prepare is called by none of", self.renamed("Puts::PrepareHere", "Puts::Prepare")[0])

    def test_the_end_of_deferred_puts_is_found(self):
        self.assertIn("Puts::Deliver is called by none of", self.renamed("Puts::End", "Puts::Deliver")[0])

    def test_a_gap_before_the_start_is_found(self):
        left_out = ("`EventLoop::Run`", "`EventLoop::BeginSteps`", "`Kinds::Start`")
        found = self.faults(lambda steps: [step for step in steps if not any(name in step for name in left_out)])
        self.assertIn("Puts::Start is called by none of", found[0])

    def test_no_step_can_go_or_change_places(self):
        """Each step that calls the one after it is needed, and so is its place."""
        steps = re.findall(STEP, section(self.DOCUMENT).split("### A get")[0])
        for i, (before, after) in enumerate(zip(steps, steps[1:])):
            if after[3] or any(calls(bodies((SOURCE / step[1]).read_text(), step[2]), after[2]) for step in steps[:i]):
                continue
            self.assertNotEqual(self.faults(lambda all_steps: all_steps[:i] + all_steps[i + 1 :]), [], before)
            self.assertNotEqual(
                self.faults(lambda all_steps: [*all_steps[:i], all_steps[i + 1], all_steps[i], *all_steps[i + 2 :]]),
                [], before)


if __name__ == "__main__":
    unittest.main()
