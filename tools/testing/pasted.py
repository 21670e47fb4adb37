"""The text of several sources as one, for an analyzer that looks only at the functions of the file that it is given."""

import os
import re
from pathlib import Path

DIRECTIVE = re.compile(r"\s*#\s*(if|endif|include)")


class Pasted:
    """An include of an earlier source is left out, and each line keeps its place in its source."""

    def __init__(self, members):
        self.members = members
        self._ends = []  # The number of the last line of each member.
        lines = []
        included = _Included()
        for member in members:
            lines += included.leave_out(Path(member).read_text().splitlines())
            self._ends.append(len(lines))
        self.text = "\n".join(lines) + "\n"

    def located(self, said, file):
        """Returns an output with the members' names and lines instead of those of the file that has the text."""
        place = re.compile(rf"(?:{re.escape(os.path.abspath(file))}|{re.escape(file)}):(\d+)")
        return place.sub(lambda found: "%s:%d" % self._place(int(found[1])), said)

    def _place(self, line):
        start = 0
        for member, end in zip(self.members, self._ends):
            if line <= end:
                break
            start = end
        return member, line - start


class _Included:
    """The includes of the sources so far: those that are compiled, and those under a condition."""

    def __init__(self):
        self._surely = set()
        self._perhaps = set()

    def leave_out(self, lines):
        """Returns a source's lines without the includes that are compiled already. Adds the source's own."""
        own = set()
        depth = 0
        kept = []
        for line in lines:
            directive = DIRECTIVE.match(line)
            kind = directive[1] if directive else ""
            depth += (kind == "if") - (kind == "endif")
            if kind == "include":
                again = depth > 0 or line in self._perhaps
                (self._perhaps if depth > 0 else own).add(line)
                if depth == 0 and line in self._surely:
                    line = ""
                elif again:
                    line += "  // NOLINT(readability-duplicate-include)"
            kept.append(line)
        self._surely |= own
        return kept
