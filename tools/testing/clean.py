"""Remembers the sources in which clang-tidy found nothing, so that it runs on those again only after a change.

The key of a source covers everything on which the output of clang-tidy depends. First its bytes, and those of each file
of the tree that it includes, also through others. Then the options, the configuration, and the Debian packages, whose
headers clang-tidy reads. An include that is compiled only under some condition counts like any other.
"""

import copy
import hashlib
import os
import re
from pathlib import Path

from .passed import Passed
from .step import output_of

INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


class CleanSources:
    def __init__(self, folder=None):
        self._passed = Passed("clang-tidy", folder)
        self._machine = self._passed.machine + output_of(["clang-tidy", "--version"])
        self._forget()

    def key(self, file, command, options):
        """Returns the key of a source that `command` compiles, and that clang-tidy checks with `options`. Paths in the
        tree are relative, so that clones share keys."""
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
        """Returns the key of the files as they are now: they may have changed while clang-tidy ran."""
        fresh = copy.copy(self)
        fresh._forget()
        return fresh.key(file, command, options)

    def has(self, key):
        return self._passed.has(key)

    def add(self, key):
        self._passed.add(key)

    def _forget(self):
        self._bytes = {}  # By path.
        self._names = {}  # By path: the includes in the file's text.

    def _included(self, file, folders):
        """Returns the file and all files of the tree that it includes."""
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
