"""README.md and docs/: the test runs each command in them in a temporary folder, or names the check that runs it. It
compiles and runs each program, and checks each option.

Paths such as /run/erda lead into that folder, and pools and runs are small.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ["ERDA_BUILD_DIR"]).resolve()
CXX = os.environ["ERDA_CC"]
DOCUMENTS = [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]
LANGUAGES = {"sh", "console", "text", "cpp", "c", "cmake", "python", "toml", "yaml"}

# Beginnings of commands that do not run here: the check that runs them, or the reason why none can.
ELSEWHERE = {
    "tools/quickstart": "tools/test",
    "tools/test": "is what runs this",
    "tools/crash-test": "tools/test",
    "tools/sim": "tools/test",
    "tools/rdma-lab": "tools/test: its guest",
    "tools/micro": "tools/test",
    "build/micro/erda-micro": "tests/tools/micro_test",
    "tools/packages": "tests/install/packages",
    "apt-get install ./packages/": "tests/install/packages",
    "tools/compare": "tests/programs/compare_test",
    "tools/paper": "tests/programs/paper_test",
    "tools/install-deps": "tools/test",
    "tools/check-prose": "tests/tools/check_prose_test",
    "cmake --preset": "tools/test",
    "ctest --test-dir": "tools/test",
    "c++ -std=c++20 01_embed_client.cc": "tools/test: the installation",
    "cc -std=c99 10_client_and_server.c": "tools/test: the installation",
    "cmake -S . -B /tmp/erda-examples": "tools/test: the installation",
    "python3 11_python.py": "tools/test: the installation",
    "build-fuzz/": "tools/test: the fuzzers",
    "mkdir -p /tmp/found": "a long run of a fuzzer",
    "build/tests/": "tools/test",
    "ERDA_STORM_INPUTS=": "a long run of a test of tests/e2e",
    "python3 tests/model/": "tools/test",
    "build/bin/erda-bench": "tests/programs/bench_test: it takes minutes",
    "build/kv/kv-": "tests/programs/kv_test",
    "systemctl": "changes the machine",
    "echo within_size >": "changes the machine",
}

# Commands that a command needs before it.
BEFORE = {
    "erda-cli mget greeting nobody": "erda-cli put greeting hello",
    "erda-cli scan --prefix session/": "erda-cli put session/1 value",
    "erda-pool create": "rm -f /var/lib/erda/pool",
    "erda-pool salvage": "rm -f /var/lib/erda/pool && erda-pool create /var/lib/erda/pool --size 1G",
    "erda-cli --token-file ~/.erda-token": "cp /etc/erda/tokens ~/.erda-token && "
                                           "erda-cli --token-file ~/.erda-token -a shm:/run/erda/socket put key value",
}

# Their output is an example: a line that begins with a name, as in "index    300001 of", begins with one of the
# document's.
EXAMPLES = ("erda-inspect --verify", "erda-pool ")

FOLDERS = re.compile(r"(?<![\w.}])/(?:run|srv|var/tmp|var/lib/erda|etc/erda|backup|tmp|dev/shm)(?=/|\b)")
PROGRAM = re.compile(r"(?:^|(?<=[;|&] )|(?<=time ))(?:build/bin/)?(?=erda-[a-z-]+\b)", re.M)


def blocks(document: pathlib.Path) -> list[tuple[int, str, str]]:
    """Returns line, language and text of each fenced block."""
    found, language, begin, text = [], None, 0, []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("```"):
            text.append(line)
        elif language is None:
            language, begin, text = line[3:], number, []
        else:
            found.append((begin, language, "\n".join(text)))
            language = None
    return found


@dataclasses.dataclass(frozen=True)
class Command:
    text: str
    code: int  # The expected exit code: 0, or the one of a comment after the command, "# exit code 1".
    output: str  # The output in the document.

    def begins(self, *beginnings: str) -> bool:
        return self.text.startswith(beginnings)


def commands(language: str, text: str) -> list[Command]:
    text = text.replace("\\\n", " ")
    pairs = re.findall(r"^\$ (.*)\n?((?:(?!\$ ).*\n?)*)", text, re.M) if language == "console" else \
        [(line, "") for line in text.splitlines()]
    found = []
    for line, output in pairs:
        command, *comment = re.split(r"(?:^|\s+)# ", line.strip(), maxsplit=1)
        said = re.match(r"exit code (\d+)", "".join(comment))
        if command:
            found.append(Command(command, int(said.group(1)) if said else 0, output.strip()))
    return found


def all_blocks(*languages: str) -> list[tuple[str, str, str]]:
    return [(f"{document.relative_to(SOURCE)}:{line}", language, text)
            for document in DOCUMENTS for line, language, text in blocks(document) if language in languages]


class Sandbox:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.servers: list[subprocess.Popen] = []
        for name in ("run/erda", "srv", "var/tmp", "var/lib/erda", "etc/erda", "backup", "tmp", "dev/shm", "home"):
            (folder / name).mkdir(parents=True)
        self.env = {"PATH": f"{BUILD}/bin:/usr/bin:/bin", "HOME": str(folder / "home"),
                    "LD_LIBRARY_PATH": f"{BUILD}/lib", "ERDA_ADDRESS": f"shm:{folder}/run/erda/socket"}

    def here(self, text: str) -> str:
        text = FOLDERS.sub(lambda match: f"{self.folder}{match.group()}", PROGRAM.sub("", text))
        text = re.sub(r"verbs://(\w+):\d+", rf"shm:{self.folder}/run/\1", text)
        text = re.sub(r"(--(?:records|operations)) \d+", r"\1 2000", text)
        text = re.sub(r"(resize .*--size )\d+G", r"\g<1>128M", text)
        return re.sub(r'(--size |size = "|,size=)\d+G', r"\g<1>64M", text)

    def run(self, command: str, code: int = 0) -> str:
        # Starts a server that a document takes for granted.
        listens = re.search(r"erda-[a-z-]*server .*--listen shm:(\S+)", command)
        uses = command + (f" {self.env['ERDA_ADDRESS']}" if re.search(r"erda-cli (?!.*(-a|--address) )", command) else "")
        for path in re.findall(r"shm:([^\s\"']+)", uses):
            if not pathlib.Path(path).exists() and not (listens and listens.group(1) == path):
                self.serve(f"erda-server --pool dram: --size 64M --listen shm:{path}")
        if re.match(r"erda-(scheme-)?server\b", command) and "--check" not in command:
            return self.serve(command.removesuffix("&"))
        if command == "kill %1":
            self.stop(self.servers.pop(0))
            return ""
        if self.servers:
            command = command.replace("$!", str(self.servers[-1].pid))
        done = subprocess.run(["bash", "-o", "pipefail", "-ec", command], cwd=self.folder, env=self.env, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=50, check=False)
        if done.returncode != code:
            raise AssertionError(f"exit code {done.returncode}:\n{command}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def serve(self, command: str) -> str:
        server = subprocess.Popen(shlex.split(command), cwd=self.folder, env=self.env, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.servers.append(server)
        said = ""
        while " ready" not in said:
            line = server.stdout.readline()
            if not line:
                raise AssertionError(f"exit code {server.wait()}:\n{command}\n{said}")
            said += line
        return said.strip()

    def stop(self, server: subprocess.Popen) -> None:
        server.send_signal(signal.SIGTERM)
        _, code = server.stdout.close(), server.wait()
        if code != 0:
            raise AssertionError(f"{server.args}: exit code {code}")

    def stop_all(self) -> None:
        while self.servers:
            self.stop(self.servers.pop())


SIMULATOR = "erda-sim"


@functools.cache
def options_of(program: str, *subcommands: str) -> frozenset[str]:
    if program == SIMULATOR:  # tools/test does not build it.
        return frozenset({"--help", *re.findall(r'"(--[a-z-]+)"', (SOURCE / "tests/sim/erda-sim.cc").read_text("utf-8"))})
    shown = subprocess.run([program, *subcommands, "--help"], capture_output=True, text=True, check=True).stdout
    options = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", shown))
    listed = shown.partition("\nSubcommands:")[2] or shown.partition("\npositional arguments:")[2]
    for name in re.findall(r"^ +([a-z]+)  ", listed, re.M) if not subcommands else ():
        options |= options_of(program, name)
    return frozenset(options)


def tools() -> list[str]:
    programs = [str(path) for path in (BUILD / "bin").glob("erda-*")] + [SIMULATOR]
    return programs + [str(SOURCE / "tools" / name) for name in ("compare", "crash-test", "micro", "paper", "rdma-lab", "test")]


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="erda-documents.")
        self.addCleanup(folder.cleanup)
        self.sandbox = Sandbox(pathlib.Path(folder.name))
        self.addCleanup(self.sandbox.stop_all)

    def test_each_block_says_what_it_is(self):
        for document in DOCUMENTS:
            for line, language, _ in blocks(document):
                self.assertIn(language, LANGUAGES, f"{document.relative_to(SOURCE)}:{line}")

    def test_each_picture_is_well_formed_and_needs_nothing_else(self):
        pictures = sorted((SOURCE / "docs").rglob("*.svg"))
        self.assertTrue(pictures)
        for picture in pictures:
            for element in ElementTree.parse(picture).iter():
                self.assertNotIn(element.tag.rpartition("}")[2], ("image", "script", "foreignObject"), picture)
                self.assertNotRegex(element.text or "", r"url\(|@import", picture)
                for name, value in element.items():
                    if name.rpartition("}")[2] == "href" or "url(" in value:
                        self.assertRegex(value, r"^(#|url\(#)", picture)

    def test_glossary_has_each_term_once_in_order(self):
        terms = re.findall(r"^\*\*(.+?)\.\*\*", (SOURCE / "docs/glossary.md").read_text(encoding="utf-8"), re.M)
        self.assertGreater(len(terms), 100)
        self.assertEqual(terms, sorted(set(terms), key=str.lower))

    def test_each_command_does_what_it_is_for(self):
        run = 0
        for place, language, text in all_blocks("sh", "console"):
            for command in commands(language, text):
                if command.begins(*ELSEWHERE):
                    continue
                with self.subTest(place=place, command=command.text):
                    for begin, before in BEFORE.items():
                        for each in before.split(" && ") if command.begins(begin) else ():
                            self.sandbox.run(self.sandbox.here(each))
                    shown = self.sandbox.here(command.output)
                    if command.begins("cat "):  # The file has the contents that the document shows.
                        pathlib.Path(self.sandbox.here(command.text[4:])).write_text(shown, encoding="utf-8")
                    printed = self.sandbox.run(self.sandbox.here(command.text), command.code)
                    if command.begins(*EXAMPLES):
                        names = [set(re.findall(r"^ *(\S+(?: \S+)*?) {2,}", text, re.M)) for text in (shown, printed)]
                        self.assertLessEqual(names[1], names[0])
                    elif shown:
                        self.assertEqual(printed, shown)
                    run += 1
            self.sandbox.stop_all()
        self.assertGreater(run, 20)

    def test_by_hand_in_readme_runs_as_pasted(self):
        """Runs all at once in a fresh shell: nothing waits between the server's start and the first put."""
        text = (SOURCE / "README.md").read_text(encoding="utf-8").partition("\nBy hand,")[2]
        block = re.search(r"^```sh\n(.*?)^```", text, re.M | re.S)[1]
        self.assertRegex(block, r"\Abuild/bin/erda-server .* &\n.* put greeting hello\n")
        (self.sandbox.folder / "build").symlink_to(BUILD)
        pasted = FOLDERS.sub(lambda match: f"{self.sandbox.folder}{match.group()}", block)
        pasted = re.sub(r"--(records|operations) \d+", r"--\1 2000", re.sub(r"--size 1G", "--size 64M", pasted))
        # Stands for a machine on which a server takes some time to start.
        slow = f"erda_server() {{ sleep 0.5; exec {BUILD}/bin/erda-server \"$@\"; }}\n"
        pasted = slow + pasted.replace("build/bin/erda-server", "erda_server", 1)
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.sandbox.folder / "home")}
        said = self.sandbox.folder / "said"
        with said.open("wb") as out:
            shell = subprocess.Popen(["bash", "-e"], cwd=self.sandbox.folder, env=env, text=True, stdin=subprocess.PIPE,
                                     stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            shell.communicate(pasted, timeout=50)
        finally:
            if shell.returncode != 0:  # The server is still running.
                os.killpg(shell.pid, signal.SIGKILL)
        printed = said.read_text(encoding="utf-8")
        self.assertEqual(shell.returncode, 0, printed)
        self.assertIn("\nhello\n", printed)
        self.assertNotIn("erda-cli: ", printed)

    def test_the_documents_have_each_command_that_another_test_runs(self):
        every = [command for _, language, text in all_blocks("sh", "console") for command in commands(language, text)]
        for begin in (*ELSEWHERE, *BEFORE, *EXAMPLES):
            self.assertTrue(any(command.begins(begin) for command in every), begin)

    def test_each_program_compiles_and_runs(self):
        compilers = {"cpp": [CXX, "-std=c++20", "-x", "c++"], "c": [CXX, "-std=c99", "-x", "c"]}
        programs = all_blocks("cpp", "c", "python")
        self.assertGreaterEqual({language for _, language, _ in programs}, {"cpp", "c", "python"})
        for place, language, text in programs:
            with self.subTest(place=place):
                text = self.sandbox.here(text)
                for path in re.findall(r'"shm:(/[^\s"]+)"', text):
                    if "listen" not in text and "erda.Server" not in text:
                        self.sandbox.serve(f"erda-server --pool dram: --size 64M --listen shm:{path}")
                file = self.sandbox.folder / "program"
                if language == "python":
                    file.write_text(f"import erda\n{text}", encoding="utf-8")
                    self.sandbox.run(f"PYTHONPATH={SOURCE}/src/python PYTHONDONTWRITEBYTECODE=1 python3 {file}")
                else:
                    subprocess.run([*compilers[language], "-Wall", "-Wextra", "-Werror", f"-I{SOURCE}/include", "-",
                                    f"-L{BUILD}/lib", "-lerda-client", "-lerda-server", "-o", file], input=text, text=True,
                                   check=True)
                    self.sandbox.run(str(file))
                self.sandbox.stop_all()

    def test_each_option_is_one(self):
        known = frozenset().union(*(options_of(tool) for tool in tools()))
        ours = re.compile(r"(?:build/bin/|build/tests/|tools/)?(erda-[a-z-]+|compare|crash-test|micro|paper|rdma-lab|sim)\b")
        named = {pathlib.Path(tool).name.replace("erda-sim", "sim"): tool for tool in tools()}
        for document in DOCUMENTS:
            text = document.read_text(encoding="utf-8")
            where = str(document.relative_to(SOURCE))
            prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
            for quoted in re.findall(r"`([^`]+)`", prose):
                if quoted.startswith("-") or ours.match(quoted):
                    for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", quoted.partition(" -- ")[0]):
                        self.assertIn(option, known, where)
            for _, language, block in blocks(document):
                for command in commands(language, block) if language in ("sh", "console") else ():
                    match = ours.match(command.text)
                    tool = match and named.get(match.group(1).replace("erda-sim", "sim"))
                    # The command of the lab is a separate one, and so is the command after ; or |.
                    rest = re.split(r" -- |[;|]|--server '|--client '", command.text)[0] if match else ""
                    for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", rest) if tool else ():
                        self.assertIn(option, options_of(tool), f"{where}: {command.text}")


if __name__ == "__main__":
    unittest.main()
