"""Checks that need no build: scripts parse, formatting, names."""

import ast
import os
import subprocess
from pathlib import Path

SOURCE_FOLDERS = ("include", "src", "bench", "tools", "tests", "docs/examples")


def sources(*suffixes):
    return sorted(str(path) for folder in SOURCE_FOLDERS for path in Path(folder).rglob("*") if path.suffix in suffixes)


def scripts():
    """Checks that each script parses, and is executable if its first line names its interpreter."""
    wrong = []
    for path in sorted(path for folder in (".ci", *SOURCE_FOLDERS) for path in Path(folder).rglob("*")):
        file = str(path)
        if not path.is_file() or path.suffix in (".cc", ".h", ".c", ".md", ".pyc") or "fuzz/corpus" in file:
            continue
        with open(path, "rb") as opened:
            first = opened.readline(200).decode(errors="replace")
        shell = "bash" if "bash" in first or file.startswith("tools/completion/") else "sh"
        if path.suffix == ".py" or "python3" in first and first.startswith("#!"):
            try:
                ast.parse(path.read_text(), file)
            except SyntaxError as error:
                wrong.append(f"{file}: {error}")
        elif first.startswith("#!") or path.suffix == ".bash":
            parsed = subprocess.run([shell, "-n", file], capture_output=True, text=True)
            if parsed.returncode != 0:
                wrong.append(parsed.stderr)
        if first.startswith("#!") and not os.access(path, os.X_OK) and not file.startswith("tools/lab/") \
                and not file.startswith("tools/debian/"):
            wrong.append(f"{file}: it is not executable")
    return "\n".join(wrong)


def formatting():
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *sources(".h", ".cc", ".c")],
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr[-5000:] or "clang-format failed"


def names():
    """Checks names: files are snake_case; the main source of a program has the program's name."""
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789_.")
    odd = [file for file in sources(".h", ".cc", ".c", ".py")
           if not set(Path(file).name) <= allowed and not Path(file).match("erda-*.cc")]
    return "\n".join(f"{file}: the name is not snake_case" for file in odd)
