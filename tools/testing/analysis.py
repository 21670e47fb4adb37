"""Runs clang-tidy on all sources. It sees those of a folder as one, which takes half the time."""

import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import process
from .clean import CleanSources
from .pasted import Pasted
from .step import Outcome

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
        for (file, *_), (_, cpu_seconds, _) in sorted(zip(files, findings), key=lambda found: -found[1][1])[:20]:
            log.say(f"{cpu_seconds:6.1f} s  {file}")
        log.say(f"{sum(cpu_seconds == 0 for _, cpu_seconds, _ in findings)} of {len(files)} looked at before")
        for _, said in bad:
            log.say(said)
        if not bad:
            return Outcome(1, 0)
        errors = sorted({line for _, said in bad for line in said.splitlines() if "error: " in line})
        return Outcome(0, 1, "\n".join(errors or [f"{file}: failed" for (file, *_), _ in bad]))

    return run


# It defines the names that bench/kv/cuckoo.cc defines for another program.
NOT_JOINED = ("bench/kv/leveldb.cc",)


def _join_sources():
    """Returns (file, compile command, Pasted or None) for each run of clang-tidy, and writes the commands of all. A file
    is a folder's sources in one, or a source that cannot be joined with others."""
    commands = {os.path.relpath(entry["file"]): entry["command"]
                for entry in json.loads((BUILD / "compile_commands.json").read_text())}
    alone = []
    folders = {}
    for folder in ("src", "bench", "tools", "docs/examples"):
        for path in sorted(Path(folder).rglob("*.cc")):
            file = str(path)
            if path.name.startswith("erda-") or folder == "docs/examples" or file in NOT_JOINED:
                alone.append((file, commands[file], None))
            else:
                # Parts of the measuring programs include the same large headers.
                folders.setdefault(re.sub("^bench/(?!schemes).*", "bench", str(path.parent)), []).append(file)
    (BUILD / "joined").mkdir(exist_ok=True)
    joined = []
    for folder, members in folders.items():
        file = BUILD / "joined" / f"{folder.replace('/', '-')}.cc"
        pasted = Pasted(members)
        file.write_text(pasted.text)
        alike = [command for member, command in commands.items() if member.split("/")[0] == folder.split("/")[0]]
        joined.append((str(file), f"clang++ {' '.join(_options_of(alike))} -c {file.absolute()}", pasted))
    joined.sort(key=lambda file: -len(file[2].text))  # The longest runs first.
    files = joined + alone
    (BUILD / "joined" / "compile_commands.json").write_text(json.dumps([
        {"directory": os.getcwd(), "file": os.path.abspath(file), "command": command} for file, command, _ in files]))
    return files


def _options_of(commands):
    """Returns the options of all these compile commands, each once, in their order."""
    return list(dict.fromkeys(OPTION.findall(" ".join(commands))))


def _analyse(file, command, pasted, results, clean):
    """Returns (status, processor seconds, output). Takes no time if the source was clean the last time."""
    options = ["--extra-arg=-Xclang", "--extra-arg=-analyzer-config", "--extra-arg=-Xclang",
               f"--extra-arg=max-nodes={ANALYZER_STATES_MAX}"]
    if not (pasted.members[0] if pasted else file).startswith("src/"):
        options.append("--checks=-clang-analyzer-*")  # Most of the time goes into templates of command lines and JSON.
    key = clean.key(file, command, options)
    if clean.has(key):
        return 0, 0, ""
    path = results / f"{file.replace('/', '_')}.log"
    with open(path, "w+", errors="replace") as log:
        ended = process.run(["clang-tidy", "--quiet", "-p", str(BUILD / "joined"), *options, file], log,
                            FILE_SECONDS_MAX)
        log.seek(0)
        said = pasted.located(log.read(), file) if pasted else log.read()
        if ended.status == 0 and clean.again(file, command, options) == key:
            clean.add(key)
        return ended.status, ended.cpu_seconds, said
