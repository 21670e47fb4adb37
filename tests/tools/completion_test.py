"""tools/completion: bash completes commands, options, values, files and sockets. The completion leaves out nothing of
--help."""

import os
import pathlib
import pty
import re
import select
import shlex
import socket
import subprocess
import tempfile
import time
import unittest

from binaries import BUILD
from helps import PROGRAMS, commands, options, pages

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "tools" / "completion" / "erda.bash"

# Completes $line at its end. Prints the replies, each on a line, and a dot.
DRIVER = """
complete_line() {
  local IFS=$' \\t\\n'
  COMP_LINE=$1 COMP_POINT=${#1}
  COMP_WORDS=("${@:2}")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _erda "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  printf '%s\\n' "${COMPREPLY[@]}" .
}
"""


def bash_words(line: str, breaks: str) -> list[str]:
    """Splits a line as bash does for completion: after spaces, and around characters that break words."""
    words = [part for word in line.split() for part in re.split(f"([{breaks}])", word) if part]
    return words if line[-1] != " " and line[-1] not in breaks else [*words, ""]


def complete(lines: list[str], folder: str = "/", breaks: str = ":=") -> list[list[str]]:
    """Returns the sorted replies for each line."""
    script = [f"COMP_WORDBREAKS=$' \\t\\n\\\"><;|&('{shlex.quote(breaks)}", f". {shlex.quote(str(SOURCE))}", DRIVER]
    for line in lines:
        script.append("complete_line " + " ".join(map(shlex.quote, [line, *bash_words(line, breaks)])))
    environment = os.environ | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "--norc", "-uc", "\n".join(script)], capture_output=True, text=True, check=True,
                          cwd=folder, env=environment, timeout=50)
    assert done.stderr == "", done.stderr
    replies = done.stdout.split(".\n")
    assert len(replies) == len(lines) + 1, done.stdout
    return [sorted(filter(None, reply.split("\n"))) for reply in replies[:-1]]


class Completion(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="erda-completion.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("keys.txt", "key file", "pool"):
            (pathlib.Path(self.folder) / name).touch()
        (pathlib.Path(self.folder) / "inner").mkdir()
        listening = socket.socket(socket.AF_UNIX)
        self.addCleanup(listening.close)
        listening.bind(f"{self.folder}/inner/socket")

    def expect(self, cases: dict[str, list[str]], breaks: str = ":="):
        for (line, expected), replies in zip(cases.items(), complete(list(cases), self.folder, breaks), strict=True):
            with self.subTest(line):
                self.assertEqual(replies, expected)

    def test_commands_and_options(self):
        self.expect({
            "erda-cli sta": ["stats"],
            "erda-cli -a shm:/run/x p": ["ping", "put"],
            "erda-cli --token-file get d": ["del", "dump"],
            "erda-cli get --with": ["--with-expiry", "--with-version"],
            "erda-cli get --tim": ["--timeout-ms"],
            "erda-cli put --if-version 7 --if": ["--if-absent", "--if-version"],
            "erda-cli put -- --if": [],
            "erda-cli get greeting ": [],
            "erda-cli get st": [],
            "erda-bench cl": ["cleaning"],
            "erda-inspect --ver": ["--verify", "--version"],
            "erda-server --pool /x --shm": ["--shm-access"],
            "erda-nobody --": [],
        })

    def test_values(self):
        self.expect({
            "erda-cli --ack ": ["persisted", "placed"],
            "erda-cli --ack pl": ["placed"],
            "erda-cli --ack=pl": ["placed"],
            "erda-cli put --path ": ["auto", "delegate", "inline", "reserve"],
            "erda-ycsb --workload ": ["A", "B", "C", "D", "F", "rmw", "update"],
            "erda-ycsb --distribution ": ["latest", "uniform", "zipfian"],
            "erda-server --flush s": ["server-flush"],
            "erda-cli --timeout-ms ": [],
            "erda-server --metrics ": [],
            "erda-cli --nonsense=": [],
        })
        self.expect({"erda-cli --ack=pl": ["--ack=placed"]}, breaks=":")

    def test_files(self):
        here = ["inner", "key file", "keys.txt", "pool"]
        self.expect({
            "erda-cli load ": here,
            "erda-cli dump k": ["key file", "keys.txt"],
            "erda-inspect ": here,
            "erda-inspect --json p": ["pool"],
            "erda-server --config k": ["key file", "keys.txt"],
            "erda-server --pool p": ["pool"],
            "erda-bench growth --pool p": ["pool"],
            "erda-cli mget --file k": ["key file", "keys.txt"],
            "erda-cli get --out=p": ["pool"],
            "erda-cli put photo --value-file p": ["pool"],
            "erda-cli put photo p": [],
        })

    def test_addresses(self):
        self.expect({
            "erda-cli -a ": ["shm:", "verbs://"],
            "erda-cli --address=v": ["verbs://"],
            "erda-cli -a shm:": ["inner"],
            "erda-cli -a shm:inner/s": ["inner/socket"],
            f"erda-cli get -a shm:{self.folder}/inner/": [f"{self.folder}/inner/socket"],
            "erda-server --listen shm:p": [],
            "erda-bench floors --address ": ["verbs://"],
        })
        self.expect({"erda-cli -a shm:inner/s": ["shm:inner/socket"]}, breaks="=")

    def test_nothing_of_help_is_forgotten(self):
        self.assertIn("erda-cli", PROGRAMS)
        cases = {}
        for program, *command in pages():
            line = " ".join([program, *command])
            of_both = sorted({*options(program), *options(program, *command)})
            cases[f"{line} -"] = of_both
            for option in of_both:
                values = options(program, *command).get(option) or options(program).get(option)
                if values and option.startswith("--"):
                    cases[f"{line} {option} "] = sorted(values)
            if not command and commands(program):
                cases[f"{line} "] = sorted(commands(program))
        self.assertGreater(len(cases), 40)
        self.expect(cases)

    def test_a_shell_completes_every_program(self):
        names = subprocess.run(["bash", "--norc", "-c", f". {shlex.quote(str(SOURCE))}; complete -p"], capture_output=True,
                               text=True, check=True).stdout
        self.assertLessEqual(set(PROGRAMS), set(re.findall(r"-F _erda (\S+)", names)))

    def test_a_shell_at_a_terminal(self):
        """Checks the user's view: bash splits the words, and inserts the reply."""
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.environ |= {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "> "}
            os.environ.pop("PROMPT_COMMAND", None)
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self.addCleanup(os.waitpid, process, 0)
        self.addCleanup(os.close, terminal)
        seen = ""

        def wait_for(text: str):
            nonlocal seen
            limit = time.monotonic() + 40
            while text not in seen:
                self.assertTrue(select.select([terminal], [], [], max(0, limit - time.monotonic()))[0], (text, seen))
                seen += os.read(terminal, 4096).decode(errors="replace")

        os.write(terminal, f". {shlex.quote(str(SOURCE))}; echo re''ady\n".encode())
        wait_for("ready\r\n")
        os.write(terminal, b"erda-cli --add\tshm:in\tso\tsta\t--js\t")
        wait_for("erda-cli --address shm:inner/socket stats --json ")
        os.write(terminal, b"\x15exit\n")
        wait_for("exit")


if __name__ == "__main__":
    unittest.main()
