"""The names of the tree: its paths, the names and options in its sources, and the sections of its documents."""

from __future__ import annotations

import fnmatch
import os
import pathlib
import re

PROSE_FOLDERS = {"README.md", "docs", "src", "include", "tools", "bench", "tests", "CMakeLists.txt", ".github", ".ci"}
FOLDERS = ("src/", "include/", "tools/", "bench/", "tests/", "docs/", ".ci/", ".github/")
SKIPPED_FOLDERS = {".git", "__pycache__", ".cache", "packages", "paper-report"}
SOURCES = (".h", ".cc", ".c", ".py", ".cmake", ".txt", ".json", ".in", ".toml", ".map", ".sysusers",
           ".1", ".5", ".7", ".8", ".bash", ".supp")
EXTENSIONS = r"(?:h|cc|c|py|md|cmake|txt|json|toml|svg|sh|bash|service|in|so|pc)"
FILE_NAME = re.compile(rf"[\w*{{}}-][\w.*{{}},-]*\.{EXTENSIONS}")
PATH = re.compile(r"(?:[\w.*{},-]+/)+[\w.*{},-]*")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
CXX_NAME = re.compile(r"(?:\w+::)*~?\w+(?:\(\))?")
OURS = re.compile(r"(?:build/bin/|build/tests/|build-\w+/tests/|tools/|bench/)?"
                  r"(?:erda(?:-[a-z]+)+|compare|crash-test|micro|paper|rdma-lab|sim|test|check-prose|quickstart|packages|"
                  r"install-deps)\b")
# Files that are not in the tree: a build, a run or an installation makes them.
MADE = re.compile(r"(?:/|~|build(?:-\w+)?/|paper-report|packages/|PATH|\.\./)")


class Tree:
    """Every path, and every name and option in the sources, without their comments."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.paths: set[str] = set()
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS and not re.match(r"build(-|$)", name)]
            here = pathlib.Path(folder).relative_to(root).as_posix()
            here = "" if here == "." else here + "/"
            self.paths.update(here + name for name in (*files, *(f"{name}/" for name in folders)))
        self.suffixes = {"/".join(parts[i:]) for path in self.paths
                         for parts in [path.rstrip("/").split("/")] for i in range(len(parts))}
        self.names: set[str] = set()
        self.options: set[str] = set()
        self.strings: set[str] = set()
        self.__headings: dict[str, list[str]] = {}
        for path in self.paths:
            if path.endswith(("/", ".md", ".svg", "check_prose_test.py")) or path.startswith("tests/fuzz/corpus/"):
                continue
            if path == "tools/check-prose":  # It names things that are not in the tree.
                self.options.update(OPTION.findall((root / path).read_text(encoding="utf-8").split('"""')[1]))
            elif path.endswith(SOURCES) or "." not in path.rsplit("/", 1)[-1]:
                self.__read(root / path)

    def __read(self, path: pathlib.Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return
        if path.suffix in (".h", ".cc", ".c"):
            text = re.sub(r"(?<![:\"/])//(?!/?[\w.]*:).*", "", text)
        self.names.update(re.findall(r"[A-Za-z_]\w*", text))
        self.options.update(OPTION.findall(text.replace("\\-", "-")))
        self.strings.update(match.rsplit("/", 1)[-1] for match in re.findall(r"[\w./@${}-]+\.\w+", text))

    def headings(self, document: str) -> list[str]:
        if document not in self.__headings:
            text = re.sub(r"(?ms)^```.*?^```", "", (self.root / document).read_text(encoding="utf-8"))
            self.__headings[document] = [" ".join(title.replace("`", "").split())
                                         for title in re.findall(r"^#+\s+(.*)$", text, re.M)]
        return self.__headings[document]

    def sections(self, document: str) -> list[str]:
        """Returns the headings, and the beginnings of paragraphs in bold or italics."""
        text = (self.root / document).read_text(encoding="utf-8")
        return self.headings(document) + [" ".join(title.split()).rstrip(".:") for title in
                                          re.findall(r"(?m)^\s*(?:[-+] )?\*{1,2}([^*\n][^*]*)\*{1,2}", text)]

    def broken_link(self, link: str, near: str) -> str | None:
        """Returns the fault of a link in Markdown, or None."""
        if re.match(r"\w+:", link):
            return None
        path, _, anchor = link.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(near), path)) if path else near
        if path not in self.paths and path + "/" not in self.paths:
            return f"a link to {path}, which is not in the tree"
        titles = self.headings(path) if anchor else []
        anchors = ["", *(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)]
        return f'a link to "#{anchor}", which is no heading of {path}' if anchor not in anchors else None

    def missing_section(self, document: str, title: str, near: str) -> str | None:
        """Returns the fault of a section that a text names, or None. The text may name only the first words of a title.
        """
        for path in (os.path.normpath(os.path.join(os.path.dirname(near), document)), document, f"docs/{document}"):
            if path in self.paths:
                begins = " ".join(title.replace("`", "").split()).rstrip(",.")
                found = any(heading == begins or heading.startswith((begins + ",", begins + " (", begins + ":"))
                            for heading in self.sections(path))
                return None if found else f'"{title}" is no section of {path}'
        return None  # The tree does not have the file: the rule for names reports that.

    def has_path(self, path: str, near: str) -> bool:
        path = path.rstrip("/").removeprefix("./")
        alternatives = re.search(r"\{([^{}]+)\}", path)
        if alternatives:
            return all(self.has_path(path.replace(alternatives.group(), each, 1), near)
                       for each in alternatives.group(1).split(","))
        if "*" in path:
            return any(fnmatch.fnmatch(suffix, path) for suffix in self.suffixes)
        beside = os.path.normpath(os.path.join(os.path.dirname(near), path))
        stems = {path, *(path + end for end in (".cc", ".h", ".py"))}  # As in "tests/server/inspect_test".
        # A build makes some files; a source then names them. An installation puts files into other folders.
        name = path.rsplit("/", 1)[-1]
        is_made = not path.startswith(FOLDERS) and not name.endswith((".h", ".cc", ".c", ".py", ".md")) and \
            (name in self.strings or ("/" in path and name in self.suffixes))
        return bool(stems & self.suffixes) or beside in self.suffixes or is_made

    def unknown(self, quoted: str, near: str) -> str | None:
        """Returns the first name in the text of backticks that the tree does not have, or None."""
        words = quoted.split()
        if not words:
            return None
        is_ours = bool(OURS.match(quoted)) or quoted.startswith("--")
        if len(words) > 1 and not is_ours:
            return None
        for option in OPTION.findall(quoted.partition(" -- ")[0]) if is_ours else ():
            if option not in self.options:
                return option
        word = words[0].rstrip(",;:")
        if "://" in word or MADE.match(word):
            return None
        if PATH.fullmatch(word):
            is_file = word.startswith(FOLDERS) or FILE_NAME.fullmatch(word.rsplit("/", 1)[-1])
            return word if is_file and not self.has_path(word, near) else None
        if FILE_NAME.fullmatch(word):
            return word if not self.has_path(word, near) else None
        if CXX_NAME.fullmatch(word) and re.search(r"::|_|[a-z][A-Z]|[A-Z][a-z]+[A-Z]|\(\)$", word):
            for part in re.split(r"::", word.removesuffix("()").replace("~", "")):
                if not self.has_name(part) and not self.has_path(part, near):
                    return part
        return None

    def has_name(self, name: str) -> bool:
        if name in self.names or not re.match("[A-Za-z_]", name) or name == "std":
            return True
        if name.startswith("_"):  # The end of several names, as in `erda_get` and `_put`.
            return any(each.endswith(name) for each in self.names)
        if re.search("(?:^|_)[A-Z]{2,}(?:_|$)", name) and re.search("[a-z]", name):  # As in `fabric_NAME_requests`.
            return True
        if name.endswith("_tests"):  # The tests' programs have the names of their folders.
            return f"tests/{name.removesuffix('_tests')}/" in self.paths
        return name.startswith("CMAKE_")


def all_files(tree: Tree) -> list[str]:
    """Returns every file with prose."""
    found = []
    for path in sorted(tree.paths):
        folder = path.split("/", 1)[0]
        if path.endswith("/") or folder not in PROSE_FOLDERS:
            continue
        if path.startswith("tests/fuzz/corpus/") or path.endswith((".json", ".svg", ".map")):
            continue
        if path.endswith((".md", *SOURCES)) or "." not in path.rsplit("/", 1)[-1]:
            found.append(path)
    return found
