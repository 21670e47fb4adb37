"""Where the instructions of a work go, by function."""

from __future__ import annotations

import re

from counting.baseline import SERVER
from counting.callgrind import Work

NAME_COLUMNS = 110
LIBRARY_COLUMNS = 14


def report(name: str, work: Work, rows: int) -> str:
    """Returns two tables: the functions by the instructions in themselves, and by those of their calls.
    The client is a library, and the shard is in erda-micro."""
    server = work.within(lambda function: function.startswith(SERVER))
    sides = f", {work.instructions - server:.1f} of the client and {server:.1f} of the shard" if server else ""
    lines = [f"{name}: {work.instructions:.1f} instructions{sides}"]
    for title, costs in (("in the function itself", work.dump.own), ("with all that it calls", work.dump.calls)):
        lines.append(f"\n{'instructions':>12}  {'share':>6}  {'library':{LIBRARY_COLUMNS}}  {title}")
        for (library, function), cost in costs.most_common(rows):
            place = f"{library.split('.so')[0]:{LIBRARY_COLUMNS}}  {short(function)}"
            lines.append(f"{cost / work.runs:12.1f}  {cost / work.dump.total:6.1%}  {place}")
    return "\n".join(lines)


def short(function: str) -> str:
    """Returns a name without Erda's namespace and without the arguments of templates."""
    text = function.replace("erda::", "").replace("(anonymous namespace)::", "")
    before = None
    while before != text:
        before, text = text, re.sub(r"(?<!operator)<[^<>]*>", "", text)
    return text if len(text) <= NAME_COLUMNS else text[:NAME_COLUMNS - 3] + "..."
