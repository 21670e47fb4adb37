"""Runs clang-tidy on all sources. Most of its checks see the sources of a folder joined, in half the time."""

import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import process
from .clean import CleanSources
from .step import Outcome

# Checks that find less, or other things, in joined sources.
ALONE_CHECKS = ("bugprone-suspicious-include,google-global-names-in-headers,misc-unused-alias-decls,"
                "misc-unused-using-decls")
# The analyzer gives a function up after a third of its default number of states, which takes half the time.
ANALYZER_STATES_MAX = 75000
FILE_SECONDS_MAX = 600
BUILD = Path("build-tidy")
# A value in quotes may have spaces.
OPTION = re.compile(r' (-isystem \S+|-[DIWfs](?:"(?:\\.|[^"\\])*"|\\.|[^\s"\\])+)')


def tidy(results):
    """Returns a step that runs clang-tidy."""

    def run(log):
        shutil.rmtree(results, ignore_errors=True)
        shutil.rmtree(BUILD / "joined", ignore_errors=True)
        results.mkdir(parents=True)
        # The commands of the sanitizers' build, one for each file.
        if log.call(["cmake", "--preset", "asan", "-B", BUILD, "-D", "CMAKE_UNITY_BUILD=OFF"]) != 0:
            return Outcome(0, 1, log.tail())
        files = _join_sources()
        clean = CleanSources()
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            findings = list(pool.map(lambda file: _analyse(*file, results, clean), files))
        log.cpu_seconds += sum(cpu_seconds for _, cpu_seconds, _ in findings)
        bad = [(file, said) for file, (status, _, said) in zip(files, findings) if status != 0]
        for (kind, file, _), (_, cpu_seconds, _) in sorted(zip(files, findings), key=lambda found: -found[1][1])[:20]:
            log.say(f"{cpu_seconds:6.1f} s  {kind} {file}")
        log.say(f"{sum(cpu_seconds == 0 for _, cpu_seconds, _ in findings)} of {len(files)} looked at before")
        for _, said in bad:
            log.say(said)
        if not bad:
            return Outcome(1, 0)
        errors = sorted({line for _, said in bad for line in said.splitlines() if "error: " in line})
        return Outcome(0, 1, "\n".join(errors or [f"{kind} {file}: failed" for (kind, file, _), _ in bad]))

    return run


def _join_sources():
    """Returns (kind, file, compile command) for each run of clang-tidy, and writes the commands of all. The kind
    "joined" is a file that includes a folder's sources; "alone" is one of those; "main" is a source that cannot be
    joined."""
    commands = {os.path.relpath(entry["file"]): entry
                for entry in json.loads((BUILD / "compile_commands.json").read_text())}
    database = [entry for file, entry in commands.items() if file.startswith(("src/", "bench/", "tools/", "docs/"))]
    files = []
    folders = {}
    for folder in ("src", "bench", "tools", "docs/examples"):
        for path in sorted(Path(folder).rglob("*.cc")):
            file = str(path)
            if path.name.startswith("erda-") or folder == "docs/examples":
                files.append(("main", file))
                continue
            files.append(("alone", file))
            # Parts of the measuring programs include the same large headers.
            folders.setdefault(re.sub("^bench/(?!schemes).*", "bench", str(path.parent)), []).append(file)
    (BUILD / "joined").mkdir(exist_ok=True)
    joined_files = []
    for folder, members in folders.items():
        joined = (BUILD / "joined" / f"{folder.replace('/', '-')}.cc").absolute()
        joined.write_text("".join(f'#include "{os.path.abspath(file)}"\n' for file in members))
        alike = [entry["command"] for file, entry in commands.items() if file.split("/")[0] == folder.split("/")[0]]
        options = _options_of(alike)
        # The sources of the tests' libraries, which the build joins, are read like that, too.
        for file in (joined, *(os.path.abspath(member) for member in members if member not in commands)):
            database.append({"directory": os.getcwd(), "file": str(file),
                             "command": f"clang++ {' '.join(options)} -c {file}"})
        joined_files.append(("joined", os.path.relpath(joined)))
    (BUILD / "joined" / "compile_commands.json").write_text(json.dumps(database))
    command_of = {os.path.relpath(entry["file"]): entry["command"] for entry in database}
    return [(kind, file, command_of[file]) for kind, file in joined_files + sorted(files, reverse=True)]


def _options_of(commands):
    """Returns the options of all these compile commands, each once, in their order."""
    return list(dict.fromkeys(OPTION.findall(" ".join(commands))))


def _analyse(kind, file, command, results, clean):
    """Returns (status, processor seconds, output). Takes no time if the source was clean the last time."""
    checks = {
        "joined": "-clang-analyzer-*,-" + ALONE_CHECKS.replace(",", ",-"),
        "alone": "-bugprone-*,-concurrency-*,-google-*,-misc-*,-modernize-*,-performance-*,-readability-*," + ALONE_CHECKS,
        "main": "",
    }[kind]
    if not file.startswith("src/"):
        checks += ",-clang-analyzer-*"  # Most of the time goes into templates of command lines and JSON.
    options = [f"--checks={checks.lstrip(',')}", "--extra-arg=-Xclang", "--extra-arg=-analyzer-config",
               "--extra-arg=-Xclang", f"--extra-arg=max-nodes={ANALYZER_STATES_MAX}"]
    key = clean.key(file, command, options)
    if clean.has(key):
        return 0, 0, ""
    path = results / f"{kind}-{file.replace('/', '_')}.log"
    with open(path, "w+", errors="replace") as log:
        ended = process.run(["clang-tidy", "--quiet", "-p", str(BUILD / "joined"), *options, file], log,
                            FILE_SECONDS_MAX)
        log.seek(0)
        if ended.status == 0 and clean.again(file, command, options) == key:
            clean.add(key)
        return ended.status, ended.cpu_seconds, log.read()
