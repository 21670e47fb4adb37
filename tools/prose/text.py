"""The prose in each kind of file: paragraphs, with the lines where they stand."""

from __future__ import annotations

import bisect
import io
import pathlib
import re
import tokenize

CXX_TOKEN = re.compile(r'R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<string>(?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)+\'(?<!\w\')'
                       r"|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/", re.S)


class Text:
    """A paragraph of prose: its lines joined by spaces, and the place where each began."""

    def __init__(self, is_prose: bool = True, is_cell: bool = False) -> None:
        self.is_prose = is_prose  # False for a heading or a cell, which need not be a sentence.
        self.is_cell = is_cell  # A cell of a table. Its length counts even if it is no sentence.
        self.text = ""
        self.starts: list[int] = []
        self.numbers: list[int] = []

    def add(self, number: int, line: str) -> None:
        self.starts.append(len(self.text) + bool(self.text))
        self.numbers.append(number)
        self.text += (" " if self.text else "") + line.strip()

    def line_at(self, position: int) -> int:
        return self.numbers[max(bisect.bisect_right(self.starts, position) - 1, 0)]


def prose_of(file: str, text: str, with_strings: bool) -> list[Text]:
    """Returns the paragraphs of a file that is not Markdown. with_strings: the texts in C++ strings count, too."""
    suffix = pathlib.Path(file).suffix
    if suffix in (".h", ".cc", ".c"):
        return prose_of_cxx(text, with_strings)
    if suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
        return prose_of_python(text)
    if suffix in (".1", ".5", ".7", ".8"):
        return prose_of_man(text)
    return prose_of_script(text)


def lines_of_markdown(text: str) -> tuple[list[Text], list[tuple[int, str]], list[tuple[int, str]]]:
    """Returns the paragraphs, the texts in backticks, and the lines whose length counts."""
    paragraphs: list[Text] = []
    lines: list[tuple[int, str]] = []
    current: Text | None = None
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced, current = not fenced, None
            continue
        if fenced:
            continue
        bare = line.strip()
        if bare.startswith("|"):
            current = None
            for cell in re.split(r"(?<!\\)\|", bare.strip("|")):
                if not re.fullmatch(r"[\s:-]*", cell):
                    paragraphs.append(Text(is_prose=bool(re.search(r"[.?!]\s*$", cell)), is_cell=True))
                    paragraphs[-1].add(number, cell)
            continue
        lines.append((number, line))
        item = re.match(r"(?:[-*+]|\d+\.)\s+(.*)", bare)
        if not bare or bare.startswith(("#", "<", "![")):
            current = None
            if bare.startswith("#"):
                heading = Text(is_prose=False)
                heading.add(number, bare.lstrip("# "))
                paragraphs.append(heading)
            continue
        if item or current is None:
            current = Text()
            paragraphs.append(current)
        current.add(number, item.group(1) if item else bare)
    quoted = [(paragraph.line_at(match.start()), match.group(1))
              for paragraph in paragraphs for match in re.finditer(r"(?<!`)`([^`]+)`(?!`)", paragraph.text)]
    return paragraphs, quoted, lines


def of_comments(comments: list[tuple[int, str]]) -> list[Text]:
    """Joins comments of lines that follow each other. A line with columns is a row of a table, and no sentence."""
    paragraphs: list[Text] = []
    last = -1
    for number, comment in comments:
        bare = comment.strip().strip("/*#!").strip()
        if not bare or re.match(r"(?:SPDX|NOLINT|clang-format|shellcheck|-\*-|[+|\-=]{2,})", bare):
            last = -1
            continue
        if re.search(r"\S {3,}\S", bare):
            paragraphs.append(Text(is_prose=False))
            paragraphs[-1].add(number, bare)
            last = -1
            continue
        if number != last + 1 or re.match(r"(?:[-*]|\d+\.|\w+:)\s", bare):
            paragraphs.append(Text())
        paragraphs[-1].add(number, bare)
        last = number
    return paragraphs


def prose_of_cxx(text: str, with_strings: bool = True) -> list[Text]:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    comments: list[tuple[int, str]] = []
    strings: list[Text] = []
    end_of_last = -1
    for match in CXX_TOKEN.finditer(text):
        number = bisect.bisect_right(starts, match.start())
        if match.lastgroup == "line":
            comments.append((number, match.group("line")))
        elif match.lastgroup == "block":
            comments += [(number + i, line) for i, line in enumerate(match.group("block").splitlines())]
        elif match.lastgroup in ("string", "raw") and with_strings:
            words = re.sub(r"\\n|\\t|\\\"|%\w+|\{[^}]*\}", " ", match.group(match.lastgroup))
            if match.lastgroup == "raw":
                strings += paragraphs_of_raw_string(number, words)
            elif strings and not text[end_of_last:match.start()].strip():  # the compiler joins them
                strings[-1].add(number, words)
            else:
                strings.append(Text())
                strings[-1].add(number, words)
            end_of_last = match.end()
    return of_comments(comments) + [text for text in strings if len(re.findall(r"[a-z]+ ", text.text)) >= 4]


def paragraphs_of_raw_string(number: int, text: str) -> list[Text]:
    """Empty lines part them. A paragraph with columns, such as a list of examples, need not be sentences."""
    paragraphs = [Text()]
    for i, line in enumerate(text.splitlines()):
        if not line.strip():
            paragraphs.append(Text())
            continue
        if re.search(r"^ |\S  +\S", line):
            paragraphs[-1].is_prose = False
        paragraphs[-1].add(number + i, line)
    return [paragraph for paragraph in paragraphs if paragraph.text]


def prose_of_python(text: str) -> list[Text]:
    comments: list[tuple[int, str]] = []
    docstrings: list[Text] = []
    before = tokenize.INDENT
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                comments.append((token.start[0], token.string))
            elif token.type == tokenize.STRING and token.string.startswith('"""') and \
                    before in (tokenize.INDENT, tokenize.NEWLINE, tokenize.ENCODING, tokenize.NL):
                docstrings.append(Text())
                for i, line in enumerate(token.string.strip('"').splitlines()):
                    if line.startswith("    ") or not line.strip():
                        docstrings.append(Text())
                    docstrings[-1].add(token.start[0] + i, line)
            if token.type != tokenize.COMMENT:
                before = token.type
    except (tokenize.TokenError, IndentationError):
        pass
    return of_comments(comments) + [text for text in docstrings if text.text.strip()]


def prose_of_script(text: str) -> list[Text]:
    return of_comments([(number, line) for number, line in enumerate(text.splitlines(), 1)
                        if re.match(r"\s*#(?!!|[\w-]+ = )", line)])  # not "#sync = ...", a setting that is commented out


def prose_of_man(text: str) -> list[Text]:
    """The paragraphs, without the examples. A tag of .TP need not be a sentence."""
    paragraphs = [Text()]
    is_example = is_tag = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith((".EX", ".EE")):
            is_example = line.startswith(".EX")
        macro = re.match(r"\.\s*(?:\\\"|(B|I|BR|BI|IR|RB|RI|IB)\b)?", line) if line.startswith(".") else None
        if is_example or (macro and not macro.group(1)):
            paragraphs.append(Text())
            is_tag = line.startswith(".TP")
            continue
        words = re.sub(r"\\f.|\\[&%]", "", line[macro.end():] if macro else line).replace("\\-", "-")
        if is_tag:
            paragraphs[-1].is_prose = False
        paragraphs[-1].add(number, words)
        if is_tag:
            paragraphs.append(Text())
            is_tag = False
    return [text for text in paragraphs if text.text.strip()]
