"""tools/check-prose: it finds each kind of offence, passes right text, and the rewritten files pass."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

SOURCE = pathlib.Path(__file__).parents[2]
SCRIPT = SOURCE / "tools" / "check-prose"
sys.path.insert(0, str(SOURCE / "tools"))


def load():
    loader = importlib.machinery.SourceFileLoader("check_prose", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_prose", loader))
    sys.modules["check_prose"] = module
    loader.exec_module(module)
    return module


check_prose = load()


class Fixture(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="erda-prose.")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("src/server/shard.h", '// Old: kStale\nclass Shard { void PollOnce(); uint64_t keys_seen_; };\n'
                                         'const char* kHelp = "--pool";  // and --gone\n')
        self.write("tools/erda.service.in", "x\n")
        self.write("CMakeLists.txt", "set(ERDA_SBOM ${PROJECT_BINARY_DIR}/erda.spdx.json)\n")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def findings(self, text, file="docs/a.md"):
        return check_prose.check(file, text, check_prose.Tree(self.root))

    def rules(self, text, file="docs/a.md"):
        return [finding.rule for finding in self.findings(text, file)]


class Words(Fixture):
    def test_each_banned_word_is_found(self):
        for words in ("It starts anew.", "The fence is behind the store.", "It takes so many steps.", "Wait a while here.",
                      "There is none.", "It is full by then.", "Whoever asks.", "It has a thread of its own.",
                      "It is full; else it waits.", "Or else it waits."):
            self.assertIn("word", self.rules(words), words)

    def test_similar_words_pass(self):
        for words in ("Nothing else changes.", "Somebody else wrote it.", "The renewed token.", "Meanwhile it waits."):
            self.assertEqual(self.rules(words), [], words)

    def test_code_is_not_prose(self):
        self.assertEqual(self.rules("Write `anew` never.\n\n```sh\necho anew\n```\n"), [])

    def test_a_word_that_a_line_ends_in_is_found_with_its_line(self):
        self.assertEqual([finding.line for finding in self.findings("One.\n\nIt waits for a\nwhile.")], [3])

    def test_tables_and_headings_count(self):
        self.assertEqual(self.rules("# Begin anew\n\n| a | starts anew |\n|---|---|\n"), ["word", "word"])


class Subjects(Fixture):
    def test_a_clause_as_a_subject_is_found(self):
        for words in ("Who may not write stages.", "What has arrived is settled first.",
                      "It waits, and what has arrived is settled first."):
            self.assertEqual(self.rules(words), ["subject"], words)

    def test_questions_objects_and_relative_clauses_pass(self):
        for words in ("What does a put cost?", "The client knows what it wrote.", "A thread, which waits, is idle.",
                      "It says what happened, to which thing, and what to do.", "**What it costs.** A fence.",
                      "- what a put costs;\n- what a get costs\n"):
            self.assertEqual(self.rules(words), [], words)


class Lengths(Fixture):
    def test_a_long_sentence_is_found(self):
        self.assertEqual(self.rules(" ".join(["few"] * 25) + "."), [])
        self.assertEqual(self.rules(" ".join(["few"] * 26) + "."), ["long"])

    def test_a_stop_ends_a_sentence(self):
        half = "A " + "\n".join(["word"] * 13) + ". "
        self.assertEqual(self.rules(half + half), [])
        self.assertEqual(self.rules(half + "`Name` " + half), [])
        self.assertEqual(self.rules(half.replace(". ", ", e.g. ") + half), ["long"])

    def test_an_item_of_a_list_is_a_paragraph(self):
        words = "\n  ".join(["word"] * 15)
        self.assertEqual(self.rules(f"- {words}\n- {words}\n"), [])

    def test_a_long_cell_is_found_though_it_is_no_sentence(self):
        few, many = " ".join(["few"] * 25), " ".join(["few"] * 26)
        self.assertEqual(self.rules(f"| a | {few} |\n|---|---|\n| {few}. | {few}. A{few[3:]} |\n"), [])
        self.assertEqual(self.rules(f"| a | {many} |\n|---|---|\n| {few} | {many}. |\n"), ["cell", "cell"])
        self.assertEqual(self.rules(f"| {few}; then one |\n|---|\n"), ["cell"])

    def test_columns_count_in_prose_alone(self):
        wide = "x" * 121
        self.assertEqual(self.rules(wide), ["columns"])
        self.assertEqual(self.rules(f"| {wide} |\n|---|\n"), [])
        self.assertEqual(self.rules(f"```text\n{wide}\n```\n"), [])


class Names(Fixture):
    def test_names_that_the_tree_has_pass(self):
        for name in ("src/server/shard.h", "server/shard.h", "shard.h", "src/{server,server}/shard.h", "src/*/shard.h", "Shard",
                     "Shard::PollOnce", "PollOnce()", "keys_seen_", "_seen_", "--pool", "erda-server --pool", "erda.spdx.json",
                     "lib/systemd/erda.service", "build/bin/erda-cli", "/dev/dax0.0", "shm:/tmp/x", "ndctl list -N", "none"):
            if name == "lib/systemd/erda.service":
                self.write("tools/erda.service", "x\n")
            self.assertEqual(self.rules(f"See `{name}`."), [], name)

    def test_names_that_the_tree_lacks_are_found(self):
        for name in ("src/server/gone.h", "src/client/shard.h", "gone.h", "Shard::PollTwice", "PollTwice()", "keys_gone_", "--gone",
                     "erda-server --gone", "kStale"):
            self.assertEqual(self.rules(f"See `{name}`."), ["name"], name)


class Links(Fixture):
    def setUp(self):
        super().setUp()
        self.write("docs/b.md", "# B\n\n## Put, through a `window`\n\n- **Parking.** Text.\n\n```text\n# No heading\n```\n")

    def test_links_to_existing_places_pass(self):
        for text in ("[b](b.md)", "[b](b.md#put-through-a-window)", "[x](https://example.org/a.md#b)", "[here](../src/server/shard.h)",
                     '[b](b.md), "Put, through a window".', '[b](b.md), "Put".', '`docs/b.md`, "Parking"', "`[b](gone.md)`"):
            self.assertEqual(self.rules(text), [], text)

    def test_links_to_missing_places_are_found(self):
        for text in ("[b](gone.md)", "[b](b.md#gone)", "[b](b.md#no-heading)", '[b](b.md), "Gone"', '[b](b.md), "Parking", "Gone".'):
            self.assertEqual(self.rules(text), ["link"], text)

    def test_a_comment_names_a_section(self):
        self.assertEqual(self.rules('// See docs/b.md,\n// "Gone".\n', "src/a.h"), ["link"])
        self.assertEqual(self.rules('// See docs/b.md,\n// "Parking".\n', "src/a.h"), [])


class Sources(Fixture):
    def test_comments_and_texts_of_cxx(self):
        text = '// It starts\n// anew.\nint x = 1;  // fine\nconst char* a = "anew";\nPrint("the server starts "\n      "anew here");\n'
        self.assertEqual([(finding.rule, finding.line) for finding in self.findings(text, "src/a.cc")],
                         [("word", 2), ("word", 6)])

    def test_comments_and_docstrings_of_python(self):
        text = 'def f():\n    """It starts anew."""\n    return "anew"  # once\n# Or anew.\n'
        self.assertEqual([finding.line for finding in self.findings(text, "tools/a.py")], [2, 4])

    def test_raw_strings_have_paragraphs_and_tables(self):
        long = " ".join(["word"] * 26)
        table = f"Examples: erda-cli get\\n{long}\n          erda-cli put"
        self.assertEqual(self.rules(f'f(R"(\nFirst words of help.\n\n{table}\n)");', "src/a.cc"), [])
        self.assertEqual(self.rules(f'f(R"(\n{table}\n\nIt {long}\n)");', "src/a.cc"), ["long"])
        found = self.findings('f(R"(\nNow some\nlong words.\n\nAnd then it begins anew.\n)");', "src/a.cc")
        self.assertEqual([finding.line for finding in found], [5])

    def test_man_pages(self):
        self.assertEqual(self.rules(".TH ANEW 1\nThe server\n.B starts\nanew.\n", "docs/man/a.1"), ["word"])

    def test_examples_of_man_pages_are_no_prose_and_tags_no_sentences(self):
        long = " ".join(["word"] * 26)
        self.assertEqual(self.rules(f".EX\nerda-cli put anew\n.EE\n.TP\n{long}\nThe text.\n", "docs/man/a.1"), [])
        self.assertEqual(self.rules(f".TP\n--new\n{long}.\n.EX\n.EE\nAnew.\n", "docs/man/a.1"), ["long", "word"])

    def test_scripts(self):
        self.assertEqual(self.rules("#!/bin/bash\n# Starts anew.\necho anew\n", "tools/a"), ["word"])


def run_main(*arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = check_prose.main(list(arguments))
    return status, out.getvalue()


class OtherTree(Fixture):
    def test_a_finding_fails_and_names_its_place(self):
        self.write("docs/a.md", "Fine.\n\nIt starts anew.\n")
        with mock.patch.object(check_prose, "ROOT", self.root.resolve()):
            status, out = run_main(str(self.root / "docs/a.md"))
        self.assertEqual(status, 1)
        self.assertIn('docs/a.md:3: "anew"', out)

    def test_without_arguments_it_checks_documents_and_comments_that_are_rewritten(self):
        self.write("docs/a.md", "Fine.\n")
        self.write("docs/b.md", "It starts anew.\n")
        self.write("src/done/a.h", '// Opens the file.\nconst char* kHelp = "starts the server anew each time";\n')
        self.write("src/done/b.cc", "int a = 0;\n")
        self.write("src/done/c.py", '"""Reads the file."""\n')
        self.write("src/open/a.h", "// What starts anew.\n")
        planted = {"src/done/a.h": ("// Opens the file. Starts anew.\n", 1),
                   "src/done/b.cc": ("int a = 0;\nint b = 0;  // A thread of its own.\n", 2),
                   "src/done/c.py": ('"""Reads the file.\n\nWhat is read stays.\n"""\n', 3),
                   "docs/a.md": ("It starts anew.\n", 1)}
        with mock.patch.multiple(check_prose, ROOT=self.root.resolve(), REWRITTEN=("docs/a.md",), EXCEPTIONS=(),
                                 REWRITTEN_COMMENTS=("src/done/",)):
            self.assertEqual(run_main(), (0, "4 files, 0 findings\n"))
            for file, (bad, line) in planted.items():
                good = (self.root / file).read_text(encoding="utf-8")
                self.write(file, bad)
                status, out = run_main()
                self.assertEqual(status, 1, file)
                self.assertRegex(out, rf"(?m)\A{file}:{line}: .*\n4 files, 1 findings$")
                self.write(file, good)

    def test_an_exception_hides_a_finding_and_is_told_of_when_it_is_not_needed(self):
        self.write("docs/a.md", "It starts anew.\n")
        for exceptions, status, said in (([("docs/a.md", "word", "anew", "a quote of the paper")], 0, "0 findings"),
                                         ([("docs/a.md", "word", "gone", "a quote of the paper")], 1, "for gone is not needed"),
                                         ([("docs/b.md", "word", "anew", "a quote of the paper")], 1, "1 findings")):
            with mock.patch.object(check_prose, "ROOT", self.root.resolve()), \
                    mock.patch.object(check_prose, "EXCEPTIONS", exceptions):
                code, out = run_main(str(self.root / "docs/a.md"))
            self.assertEqual(code, status, out)
            self.assertIn(said, out)

    def test_all_counts_and_does_not_fail(self):
        self.write("docs/a.md", "It starts anew.\n")
        with mock.patch.object(check_prose, "ROOT", self.root.resolve()):
            status, out = run_main("--list")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"(?m)^docs/a\.md:1: ")
        self.assertRegex(out, r"(?m)^ +1 +0 +0 +0 +0 +0 +0  docs/a\.md$")


class Program(unittest.TestCase):

    def test_the_rewritten_documents_and_comments_pass(self):
        status, out = run_main()
        self.assertEqual(status, 0, out)

    def test_a_planted_bad_comment_in_each_rewritten_folder_is_found(self):
        tree = check_prose.Tree(SOURCE)
        sources = [file for file in check_prose.all_files(tree) if check_prose.is_rewritten_source(file)]
        for folder in check_prose.REWRITTEN_COMMENTS:
            # One file of each kind: a comment is found in the same way in all of them.
            kinds = {pathlib.Path(file).suffix: file for file in sources if file.startswith(folder)}
            self.assertTrue(kinds, f"{folder} has no files with comments")
            for suffix, file in kinds.items():
                text = (SOURCE / file).read_text(encoding="utf-8")
                mark = "//" if suffix in (".h", ".cc", ".c") else "#"
                planted = f"{text}\n{mark} Whoever asks gets so many.\n"
                found = [finding.text for finding in check_prose.check(file, planted, tree, with_strings=False)]
                self.assertTrue(any("Whoever" in text for text in found), file)
                self.assertTrue(any("so many" in text for text in found), file)

    def test_all_counts_every_file_in_seconds_and_does_not_fail(self):
        start = time.process_time()
        status, out = run_main("--all")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"(?m)^ +word +subject +long +cell +columns +name +link  file$")
        self.assertRegex(out, r"(?m)^( +\d+){7}  \d+ files$")
        self.assertLess(time.process_time() - start, 20)

    def test_each_exception_has_a_reason(self):
        for file, rule, text, reason in check_prose.EXCEPTIONS:
            self.assertIn(rule, check_prose.RULES)
            self.assertTrue(file and text and len(reason.split()) >= 3, (file, text))

    def test_a_pattern_means_all_files_that_match_and_must_match_one(self):
        tree = check_prose.Tree(SOURCE)
        with mock.patch.object(check_prose, "REWRITTEN", ("README.md", "docs/examples/*")):
            files = check_prose.rewritten_files(tree)
            self.assertIn("docs/examples/example.h", files)
            self.assertIn("README.md", files)
            self.assertNotIn("docs/dump.md", files)
        with mock.patch.object(check_prose, "REWRITTEN", ("docs/gone.md",)), self.assertRaisesRegex(SystemExit, "docs/gone.md"):
            check_prose.rewritten_files(tree)

    def test_it_can_be_run(self):
        self.assertTrue(os.access(SCRIPT, os.X_OK))


if __name__ == "__main__":
    unittest.main()
