"""Checks that every element of a page is closed in its turn."""

import html.parser


class _Balance(html.parser.HTMLParser):
    VOID = {"meta", "br"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def unbalanced(page: str) -> list[str]:
    """Returns the elements that are not closed, or closed in a wrong place."""
    balance = _Balance()
    balance.feed(page)
    return balance.open + balance.wrong
