"""The rules for prose, and the check of a file against them."""

from __future__ import annotations

import dataclasses
import pathlib
import re

from prose.text import Text, lines_of_markdown, prose_of
from prose.tree import Tree

WORDS_MAX = 25
COLUMNS_MAX = 120

BANNED = {
    r"anew": 'say "again", or name the new thing',
    r"behind": 'say "after", or name the place',
    r"so many": "give the number",
    r"a while": "give the time, or the event",
    r"is (?-i:none)": 'say "does not exist", or "is not one"',
    r"by then": "name the moment",
    r"whoever": "name the actor",
    r"of (?:its|their|his) own": 'say "separate", or leave it out',
    # "Something else" stands for itself; "else no key" hangs.
    r"(?:(?<=[.;:,(—] )|(?<=[(])|^|(?<=\bor )|(?<=\band ))else": 'say "otherwise", with the condition',
}
BANNED_PATTERN = re.compile("|".join(rf"(?P<w{i}>\b(?<!-){word}\b(?!-))" for i, word in enumerate(BANNED)), re.I | re.M)
ADVICE = list(BANNED.values())

# A clause as a subject: "Who may not write stages" and "what has arrived is settled". Questions are no such clauses.
SUBJECT = re.compile(r"(?:^|(?<=[;:] )|(?<=\band )|(?<=\bbut )|(?<=\bso )|(?<=\bso that )|(?<=, ))"
                     r"(?:who|whoever|(?<!, )whose|what|whatever)\s+\w", re.I)

# Matches the end of a sentence: a stop, then perhaps a quote or bracket, then a space and the beginning of a sentence.
SENTENCE_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.?!][\"'”)\]*_]*\s+(?=[\"'“(\[*_]*[A-Z0-9`\x00])")

RULES = ("word", "subject", "long", "cell", "columns", "name", "link")
CODE = "\x00"  # Stands for the text in backticks.
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]*)\)")
SECTION = re.compile(r'([\w/]+\.md)[)`]*,\s+("[^"]+"(?:,?\s+(?:and\s+)?"[^"]+")*)')


@dataclasses.dataclass(frozen=True)
class Finding:
    file: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def check(file: str, text: str, tree: Tree, with_strings: bool = True) -> list[Finding]:
    found: list[Finding] = []
    is_markdown = pathlib.Path(file).suffix == ".md"
    quoted: list[tuple[int, str]] = []
    if is_markdown:
        paragraphs, quoted, lines = lines_of_markdown(text)
        found += [Finding(file, number, "columns", f"{len(line)} columns; at most {COLUMNS_MAX}")
                  for number, line in lines if len(line) > COLUMNS_MAX]
    else:
        paragraphs = prose_of(file, text, with_strings)
    for paragraph in paragraphs:
        found += check_paragraph(file, paragraph)
        for match in SECTION.finditer(paragraph.text):
            for title in re.findall('"([^"]+)"', match.group(2)):
                missing = tree.missing_section(match.group(1), title, file)
                if missing:
                    found.append(Finding(file, paragraph.line_at(match.start()), "link", missing))
    for match in LINK.finditer(re.sub(r"(?ms)^```.*?^```|`[^`\n]+`", blank, text)) if is_markdown else ():
        broken = tree.broken_link(match.group(1), file)
        if broken:
            found.append(Finding(file, text.count("\n", 0, match.start()) + 1, "link", broken))
    for number, name in quoted:
        unknown = tree.unknown(name, file)
        if unknown:
            found.append(Finding(file, number, "name", f"`{unknown}` is not in the tree"))
    return sorted(found, key=lambda finding: finding.line)


def blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def check_paragraph(file: str, paragraph: Text) -> list[Finding]:
    # Keeps the length, so that positions stay. A link stands for its text.
    text = re.sub(r"(?<!`)`[^`]+`(?!`)", lambda match: CODE + " " * (len(match.group()) - 1), paragraph.text)
    text = re.sub(r"\]\([^)\s]*\)", lambda match: "]" + " " * (len(match.group()) - 1), text)
    found = []
    for match in BANNED_PATTERN.finditer(text):
        advice = ADVICE[int(match.lastgroup[1:])]
        found.append(Finding(file, paragraph.line_at(match.start()), "word", f'"{match.group()}": {advice}'))
    if not paragraph.is_prose and not paragraph.is_cell:
        return found
    begin = 0
    for end in [match.end() for match in SENTENCE_END.finditer(text)] + [len(text)]:
        sentence = text[begin:end]
        words = len(re.findall(r"\S*[\w\x00]\S*", sentence))
        if words > WORDS_MAX:
            rule, what = ("cell", "a sentence in a table") if paragraph.is_cell else ("long", "a sentence")
            found.append(Finding(file, paragraph.line_at(begin), rule,
                                 f'{what} of {words} words, at most {WORDS_MAX}: "{shortened(sentence)}"'))
        # A heading in its line, as in "**What it costs.**".
        is_lead_in = re.fullmatch(r"\s*\*+[^*]+\*+:?\s*", sentence)
        if paragraph.is_prose and not is_lead_in and not sentence.rstrip(" *_\"')").endswith("?"):
            plain = re.sub(r"[*_\"'(\[]", " ", sentence)
            offset = len(plain) - len(plain.lstrip())
            plain = plain.lstrip()
            for match in SUBJECT.finditer(plain):
                # An item of a list, without a stop.
                is_fragment = match.start() == 0 and not re.search(r"[.!:]\W*$", plain)
                if not is_fragment and is_subject(plain[match.start():], first=match.start() == 0):
                    clause = shortened(sentence[offset + match.start():])
                    found.append(Finding(file, paragraph.line_at(begin + offset + match.start()), "subject",
                                         f'a clause as a subject, name the actor: "{clause}"'))
        begin = end
    return found


def is_subject(clause: str, first: bool) -> bool:
    """Whether "what ..." governs a verb. It does at the beginning of a sentence; elsewhere only if a verb follows its
    clause."""
    if first:
        return True
    verb = r"(?:is|are|was|were|has|have|does|do|must|may|can|cannot|counts?|stays?|gets?|goes|comes?|remains?|needs?)"
    word = r"(?:(?!and\b|or\b|but\b|wh)\w+\s+)"
    return re.match(rf"wh\w+\s+{word}{{0,8}}?{verb}\s+{word}{{0,8}}?{verb}\b", clause, re.I) is not None


def shortened(text: str) -> str:
    text = " ".join(text.replace(CODE, "`…`").split())
    return text if len(text) <= 70 else text[:67] + "..."
