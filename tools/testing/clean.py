"""Remembers the sources in which clang-tidy found nothing, so that it runs on those again only after a change.

A source is known by all that decides what clang-tidy says of it: its bytes, those of each file of the tree that it
includes (also through others), the options, the configuration, and the versions of all Debian packages, since their
headers are read too. An include that is compiled only under some condition counts like any other.
"""

import copy
import hashlib
import os
import re
from pathlib import Path

from .step import output_of

INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


class CleanSources:
    def __init__(self, folder=None):
        self._folder = Path(folder or _default_folder())
        self._machine = hashlib.sha256(
            (output_of(["dpkg-query", "-W"]) + output_of(["clang-tidy", "--version"])).encode()).hexdigest()
        self._forget()

    def key(self, file, command, options):
        """Of a source that is compiled by `command`, and looked at with `options`. Paths in the tree are relative, so that
        clones share what they know."""
        known = hashlib.sha256(self._machine.encode())
        root = os.getcwd()
        for text in (command, *options):
            known.update(text.replace(root, ".").encode() + b"\0")
        known.update(self._bytes_of(".clang-tidy"))
        folders = [path for path in re.findall(r" -I ?(\S+)", command) if os.path.abspath(path).startswith(root)]
        for path in sorted(self._included(os.path.relpath(file), folders)):
            known.update(path.encode() + b"\0" + self._bytes_of(path).replace(root.encode(), b".") + b"\0")
        return known.hexdigest()

    def again(self, file, command, options):
        """The key as the files are now: they may have changed while clang-tidy ran."""
        fresh = copy.copy(self)
        fresh._forget()
        return fresh.key(file, command, options)

    def has(self, key):
        return (self._folder / key).exists()

    def add(self, key):
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / key).touch()

    def _forget(self):
        self._bytes = {}  # by path
        self._names = {}  # by path: what the file includes, as it says

    def _included(self, file, folders):
        """The file and all files of the tree that it includes."""
        found = set()
        to_visit = [file]
        while to_visit:
            path = to_visit.pop()
            if path in found:
                continue
            found.add(path)
            for name in self._includes_of(path):
                for folder in (os.path.dirname(path), *folders):
                    candidate = os.path.relpath(os.path.join(folder, name))
                    if not candidate.startswith("..") and os.path.isfile(candidate):
                        to_visit.append(candidate)
        return found

    def _includes_of(self, path):
        if path not in self._names:
            self._names[path] = [name.decode() for name in INCLUDE.findall(self._bytes_of(path))]
        return self._names[path]

    def _bytes_of(self, path):
        if path not in self._bytes:
            self._bytes[path] = Path(path).read_bytes()
        return self._bytes[path]


def _default_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "erda" / "clang-tidy"
