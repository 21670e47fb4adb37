"""docs/man: a page for each program that says the same as its --help; examples that run."""

import pathlib
import re
import subprocess
import unittest

from helps import PROGRAMS, commands, help_of, options
from live_server import LiveServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "docs" / "man"
PAGES = sorted(MAN.glob("*.[1-8]"))


def page_of(program: str) -> pathlib.Path:
    found = [page for page in PAGES if page.stem == program and page.suffix in (".1", ".8")]
    assert len(found) == 1, (program, found)
    return found[0]


def plain(page: pathlib.Path) -> str:
    """Returns the text without fonts and escapes; headings stay as in the source."""
    text = re.sub(r"\\f[BIR]", "", page.read_text(encoding="utf-8"))
    return text.replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")


def sections(text: str, macro: str = ".SH") -> dict[str, str]:
    parts = re.split(rf"^\{macro} (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def names(text: str) -> set[str]:
    """Returns the long options in the text."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


def tagged(text: str) -> set[str]:
    """Returns the options that have an entry, short ones too."""
    return {word.strip(",") for tag in re.findall(r"^\.TP\n(.*)", text, re.MULTILINE)
            for word in tag.split() if word.startswith("-")}


def examples(page: pathlib.Path) -> list[str]:
    return re.findall(r"^\.EX\n(.*?)^\.EE", sections(plain(page))["EXAMPLES"], re.MULTILINE | re.DOTALL)


class ManPages(unittest.TestCase):
    def test_there_is_one_for_each_program(self):
        self.assertGreater(len(PROGRAMS), 5)
        for program in PROGRAMS:
            text = plain(page_of(program))
            self.assertIn(f"\n{program} - ", text)
            wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
            self.assertEqual([name for name in sections(text) if name in wanted], wanted, program)

    def test_each_option_has_its_entry(self):
        for program in PROGRAMS:
            with self.subTest(program):
                parts = sections(plain(page_of(program)))
                self.assertEqual(tagged(parts["OPTIONS"]), set(options(program)))

    def test_each_command_has_its_options(self):
        for program in PROGRAMS:
            if not commands(program):
                continue
            part = sections(plain(page_of(program)))["COMMANDS"]
            found = {title.split()[0]: text for title, text in sections(part, ".SS").items()}
            self.assertEqual(set(found), set(commands(program)))
            for command, text in found.items():
                with self.subTest(f"{program} {command}"):
                    there = {name for name in options(program, command) if name.startswith("--")} - {"--help"}
                    self.assertLessEqual(there, names(text))
                    # Each entry names an option of the program.
                    self.assertLessEqual(tagged(text), set(options(program, command)))

    def test_each_option_of_a_page_exists(self):
        for page in PAGES:
            for line in plain(page).splitlines():
                known = {name for program in PROGRAMS if program in line or program == page.stem
                         for command in [(), *((name,) for name in commands(program))] for name in options(program, *command)}
                self.assertLessEqual(names(line), known, (page.name, line))

    def test_fixed_values_are_named_where_the_option_is(self):
        for program in PROGRAMS:
            parts = sections(plain(page_of(program)))
            for command in [(), *((name,) for name in commands(program))]:
                part = sections(parts["COMMANDS"], ".SS") if command else {"": parts["OPTIONS"]}
                [text] = [text for title, text in part.items() if title.split()[:1] == list(command)]
                entries = re.split(r"^\.TP\n", text, flags=re.MULTILINE)
                for option, values in options(program, *command).items():
                    for value in values:
                        [entry] = [entry for entry in entries if option in entry.partition("\n")[0].replace(",", " ").split()]
                        self.assertRegex(entry, rf"\b{re.escape(value)}\b", (program, command, option))

    def test_exit_codes_are_those_of_help(self):
        for program in PROGRAMS:
            told = help_of(program).partition("\nExit codes: ")[2].partition("\n\n")[0]
            codes = set(re.findall(r"(?:^|[,;]\s+)(\d)(?= )", told))
            self.assertTrue(codes, program)
            on_page = re.findall(r"^\.TP\n(\d)\n", sections(plain(page_of(program)))["EXIT STATUS"], re.MULTILINE)
            self.assertEqual(set(on_page), codes, program)

    def test_environment_is_that_of_help(self):
        for program in PROGRAMS:
            in_help = set(re.findall(r"\(Env:(\w+)\)", help_of(program)))
            on_page = set(re.findall(r"^(ERDA_\w+)$", sections(plain(page_of(program))).get("ENVIRONMENT", ""), re.MULTILINE))
            self.assertEqual(on_page, in_help, program)

    def test_the_keys_of_the_configuration_are_all_there(self):
        tags = re.findall(r"^\.TP\n(.*)", sections(plain(MAN / "erda-server.toml.5"))["KEYS"], re.MULTILINE)
        keys = {key for tag in tags for key in tag.split(", ")}
        flags = {"--config", "--check", "--help", "--version"}
        self.assertEqual(keys, {name[2:] for name in options("erda-server") if name.startswith("--") and name not in flags})

    def test_groff_has_nothing_to_say(self):
        for page in PAGES:
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "", page.name)

    def test_pages_that_are_referred_to_exist(self):
        there = {f"{page.stem}({page.suffix[1:]})" for page in PAGES}
        for page in PAGES:
            text = plain(page)
            self.assertLessEqual(set(re.findall(r"\b([\w.-]+\(\d\))", text)), there, page.name)
            own = f"{page.stem}({page.suffix[1:]})"
            self.assertNotIn(own, sections(text)["SEE ALSO"], page.name)
        see = sections(plain(MAN / "erda.7"))["SEE ALSO"]
        self.assertLessEqual(there - {"erda(7)"}, set(re.findall(r"[\w.-]+\(\d\)", see)), "erda(7) leads to all")

    def test_files_that_are_named_are_installed(self):
        """The files of the folder share/doc/erda."""
        files = sections(plain(MAN / "erda.7"))["FILES"]
        documents = re.findall(r"\b[\w-]+\.md\b", files)
        self.assertGreater(len(documents), 2)
        for document in documents:
            self.assertTrue((ROOT / "docs" / document).is_file(), document)

    def test_examples_of_erda_cli_run(self):
        with LiveServer() as server:
            (server.folder / "photo.jpg").write_bytes(bytes(range(256)))
            for example in examples(MAN / "erda-cli.1"):
                script = example.replace("shm:/run/erda/socket", server.address)
                if "ERDA_ADDRESS" not in script:
                    script = f"export ERDA_ADDRESS={server.address}\n{script}"
                done = server.run(script)
                self.assertEqual(done.returncode, 0, f"{example}\n{done.stdout}{done.stderr}")
            self.assertEqual((server.folder / "copy.jpg").read_bytes(), bytes(range(256)))
            left = server.run(f"erda-cli -a {server.address} scan").stdout.split()
            self.assertEqual(sorted(left), ["greeting", "lock", "now", "photo", "visits"])

    def test_examples_of_the_overview_run(self):
        with LiveServer() as server:
            [example] = examples(MAN / "erda.7")
            script = example.replace("/tmp/erda", f"{server.folder}/erda").replace("socket &", "socket > ready &")
            script = script.replace("export", "until grep -q ready ready; do sleep 0.02; done\nexport", 1)
            done = server.run(f"set -m\n{script}wait")
            self.assertEqual(done.stdout, "hello\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
