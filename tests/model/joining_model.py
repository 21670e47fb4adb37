#!/usr/bin/env python3
"""An exhaustive model of which mirror counts: a primary with two shards, two mirrors, and an operator.

    joining_model.py            every configuration, and every planted defect
    joining_model.py --trace D  a shortest run that breaks the planted defect D

The exit code is 0 only if every configuration holds and every planted defect is found.

docs/mirror.md describes the design, and mirror_model.py has the bytes of one shard. Here a shard's stream is a number
of puts. A mirror has stored a number of them, the first ones. The primary is one with "stop": without a mirror it
answers nothing.

A mirror has a link to each shard. It makes a copy, or goes on where it was, and then asks each shard to let it join.
The primary has one mirror that counts, for all shards. Its superblock names that mirror before any shard tells it that
it has joined. Once the mirror has stored all up to the places at which it joined, in both shards, its superblock says
that it is in sync. Then it says so to each shard. A shard answers only after it has heard this, and only what that
mirror has stored. (The mirror's answers about its place take no time here. A late one only makes the primary answer
later.)

A link may be lost at any moment. The mirror may not notice that. Then it ends its other links, and comes again. Either
process may start again. A write of the mark may fail, and take effect or not. (The other writes of superblocks do not
fail here.) The operator may have the primary forget the mirror that counts, and does not promote it after that.

The model checks:

    - A mirror whose superblock says that it is in sync has all that was answered. The operator may promote it at any
      moment.
    - When a shard answers, the superblock of a mirror says so.
"""
import sys
from collections import namedtuple

from _explore import explore
from _program import main

SHARDS = (0, 1)
MIRRORS = (0, 1)

# joined: the place at which the mirror joined, or None.
#
# told: the mirror knows that. said: the mirror has said that it is in sync. heard: the shard has heard this.
#
# up: false once the link is lost, and the mirror has not noticed that.
Link = namedtuple("Link", "joined told said heard up")
NEW = Link(None, False, False, False, True)

# mark: the mirror's superblock says that it is in sync. whole: its pool is a copy.
#
# unsure: a write of the mark has failed. So the process does not know whether the superblock has the mark.
#
# stored: by shard. links: by shard, or None.
#
# asks: it has all of its copy. life: that of the primary's streams which it knows.
Mirror = namedtuple("Mirror", "mark whole unsure stored links asks life")

# end: by shard, the puts that it has. answered: by shard, the puts that clients have heard of, or seen.
#
# named: the mirror in the primary's superblock. counts: the mirror that may join, or None.
#
# serves: by shard, clients may get.
State = namedtuple("State", "end answered named counts serves life mirrors forgotten losses reboots restarts forgets "
                            "fails")


class Config:
    # puts: by shard, how many there are at most.
    #
    # losses: of links. reboots: of the primary's machine. restarts: of the mirrors' processes.
    #
    # forgets: how often the operator has the primary forget a mirror. fails: how often a write of a mark fails.
    def __init__(self, puts=(1, 1), mirrors=1, losses=0, reboots=0, restarts=0, forgets=0, fails=0):
        self.puts, self.mirrors = puts, mirrors
        self.losses, self.reboots, self.restarts, self.forgets = losses, reboots, restarts, forgets
        self.fails = fails
        self.defect = None


def initial(c):
    mirror = Mirror(False, False, False, (0, 0), (None, None), False, 0)
    return State((0, 0), (0, 0), None, None, (False, False), 1, (mirror,) * c.mirrors, (), 0, 0, 0, 0, 0)


def put_at(sequence, i, what):
    return sequence[:i] + (what,) + sequence[i + 1:]


def with_mirror(s, m, **changes):
    return s._replace(mirrors=put_at(s.mirrors, m, s.mirrors[m]._replace(**changes)))


def with_link(s, m, shard, **changes):
    links = s.mirrors[m].links
    return with_mirror(s, m, links=put_at(links, shard, links[shard]._replace(**changes)))


# --- The primary

def primary_steps(c, s):
    for shard in SHARDS:
        if s.end[shard] < c.puts[shard]:
            yield f"a put comes to shard {shard}", s._replace(end=put_at(s.end, shard, s.end[shard] + 1)), ()
        for m in range(c.mirrors):
            yield from steps_of_link(c, s, shard, m)
    if s.named != s.counts and c.defect == "names-after-telling":
        yield "the primary's superblock names the mirror", s._replace(named=s.counts), ()
    if s.forgets < c.forgets and s.named is not None:
        t = s._replace(named=None, counts=None, forgets=s.forgets + 1, forgotten=s.forgotten + (s.named,))
        mirror = t.mirrors[s.named]
        links = tuple(lost(link) for link in mirror.links)
        yield f"the operator has the primary forget mirror {s.named}", with_mirror(t, s.named, links=links), ()
    if s.reboots < c.reboots:
        yield from reboots(c, s)


def steps_of_link(c, s, shard, m):
    mirror = s.mirrors[m]
    link = mirror.links[shard]
    if link is None or not link.up:
        return
    may_join = s.counts in (None, m) or c.defect == "lets-another-join"
    if mirror.asks and link.joined is None and may_join:
        named = s.named if c.defect == "names-after-telling" else m
        t = s._replace(counts=m, named=named)
        yield f"shard {shard} lets mirror {m} join", with_link(t, m, shard, joined=s.end[shard]), ()
    if link.joined is not None and not link.told:
        yield f"mirror {m} hears that it has joined shard {shard}", with_link(s, m, shard, told=True), ()
    if link.said and not link.heard:
        yield f"shard {shard} hears that mirror {m} is in sync", with_link(s, m, shard, heard=True), ()
    counted = link.heard
    if c.defect == "counts-each-shard":
        counted = link.joined is not None and mirror.stored[shard] >= link.joined
    if counted:
        # Recovery has settled what the pool had, so the first get may show all of it.
        shown = s.answered[shard] if s.serves[shard] else link.joined
        answered = max(shown, mirror.stored[shard])
        if answered > s.answered[shard] or not s.serves[shard]:
            t = s._replace(answered=put_at(s.answered, shard, answered), serves=put_at(s.serves, shard, True))
            yield f"shard {shard} answers {answered}", t, (("answers", mirror.mark),)


def lost(link):
    return None if link is None else link._replace(up=False)


def reboots(c, s):
    """The primary's machine starts again. Its streams are gone. Its NVM has what any mirror may have, and any beginning
    of the rest."""
    t = s._replace(counts=s.named, serves=(False, False), life=s.life + 1, reboots=s.reboots + 1)
    for m in range(c.mirrors):
        t = with_mirror(t, m, links=tuple(lost(link) for link in t.mirrors[m].links))
    least = [max([s.answered[shard]] + [mirror.stored[shard] for mirror in s.mirrors]) for shard in SHARDS]
    for first in range(least[0], s.end[0] + 1):
        for second in range(least[1], s.end[1] + 1):
            yield f"the primary's machine starts again with {first} and {second}", t._replace(end=(first, second)), ()


# --- The mirrors

def mirror_steps(c, s, m):
    mirror = s.mirrors[m]
    if mirror.links == (None, None):
        # The shards tell the ends of their streams. All that the copy shows after that is in the streams, too.
        keeps = c.defect == "keeps-mark-while-copying" or (c.defect == "trusts-a-failed-write" and mirror.unsure)
        copy = Mirror(mirror.mark and keeps, False, False, s.end, (NEW, NEW), False, s.life)
        yield f"mirror {m} begins a copy", s._replace(mirrors=put_at(s.mirrors, m, copy)), ()
        if mirror.whole and mirror.life == s.life:
            yield f"mirror {m} comes again", with_mirror(s, m, links=(NEW, NEW), asks=True), ()
        return
    for shard in SHARDS:
        link = mirror.links[shard]
        if link.up and mirror.stored[shard] < s.end[shard]:
            yield (f"mirror {m} stores a put of shard {shard}",
                   with_mirror(s, m, stored=put_at(mirror.stored, shard, mirror.stored[shard] + 1)), ())
        if link.up and s.losses < c.losses:
            t = with_link(s, m, shard, up=False)
            yield f"the link of mirror {m} to shard {shard} is lost", t._replace(losses=s.losses + 1), ()
    if not mirror.asks:
        yield f"mirror {m} has all of its copy, and asks to join", with_mirror(s, m, asks=True), ()
    elif joined_all(c, s, m):
        yield from in_sync(c, s, m)
    if not all(link.up for link in mirror.links):
        yield f"mirror {m} notices that a link is lost", end_links(s, m), ()
    if s.restarts < c.restarts:
        yield f"mirror {m} starts again", end_links(s, m)._replace(restarts=s.restarts + 1), ()


def end_links(s, m):
    return with_mirror(s, m, links=(None, None), asks=False)


def joined_all(c, s, m):
    mirror = s.mirrors[m]
    shards = SHARDS[:1] if c.defect == "in-sync-with-one-shard" else SHARDS
    heard_of = lambda link: link.told or (c.defect == "in-sync-before-joining" and link.up)
    return all(heard_of(mirror.links[shard]) and mirror.stored[shard] >= (mirror.links[shard].joined or 0)
               for shard in shards)


def in_sync(c, s, m):
    mirror = s.mirrors[m]
    if not mirror.mark or mirror.unsure:
        marked = with_mirror(s, m, mark=True, whole=True)
        yield f"the superblock of mirror {m} says that it is in sync", with_mirror(marked, m, unsure=False), ()
        if s.fails < c.fails:
            for t in (with_mirror(s, m, whole=True), marked):
                t = end_links(with_mirror(t, m, unsure=True), m)
                t = t._replace(fails=s.fails + 1)
                yield f"the write of the mark of mirror {m} fails, mark: {t.mirrors[m].mark}", t, ()
    if (mirror.mark and not mirror.unsure) or c.defect == "says-before-its-superblock":
        for shard in SHARDS:
            link = mirror.links[shard]
            if link.told and not link.said:
                yield f"mirror {m} says to shard {shard} that it is in sync", with_link(s, m, shard, said=True), ()


# --- Every step that can come next

def steps(c, s):
    yield from primary_steps(c, s)
    for m in range(c.mirrors):
        yield from mirror_steps(c, s, m)


class Monitor:
    start = True

    def after(self, good, event):
        return good and event[1]

    def holds(self, good):
        return good


def may_be_promoted(s, m):
    """Whether mirror m has all that was answered, if it may be promoted."""
    mirror = s.mirrors[m]
    if not mirror.mark or m in s.forgotten:
        return True
    return mirror.whole and all(mirror.stored[shard] >= s.answered[shard] for shard in SHARDS)


def check(c, limit=5_000_000):
    def checked_steps(s):
        for label, t, events in steps(c, s):
            safe = all(may_be_promoted(t, m) for m in range(c.mirrors))
            yield label, t, events + (("safe", safe),)
    return explore(initial(c), checked_steps, Monitor(), limit)


DESIGN = {
    "one mirror": Config((2, 1)),
    "links are lost": Config((2, 1), losses=2),
    "the primary's machine starts again": Config((1, 1), losses=1, reboots=2),
    "the mirror starts again": Config((2, 1), restarts=2),
    "all of these, one mirror": Config((1, 1), losses=1, reboots=1, restarts=1),
    "writes of the mark fail": Config((1, 1), losses=1, reboots=1, fails=2),
    "two mirrors": Config((1, 1), mirrors=2, losses=1),
    "two mirrors, the primary's machine starts again": Config((1, 0), mirrors=2, reboots=1),
    "two mirrors, one is forgotten": Config((1, 0), mirrors=2, losses=1, forgets=1),
}
PLANTED = {
    "counts-each-shard": Config((1, 1)),
    "in-sync-with-one-shard": Config((1, 1)),
    "in-sync-before-joining": Config((1, 0), mirrors=2, losses=1),
    "says-before-its-superblock": Config((1, 1)),
    "keeps-mark-while-copying": Config((1, 1), losses=1),
    "trusts-a-failed-write": Config((1, 1), reboots=1, fails=1),
    "lets-another-join": Config((1, 0), mirrors=2, losses=1),
    "names-after-telling": Config((1, 0), mirrors=2, reboots=1),
}


if __name__ == "__main__":
    sys.exit(main(__doc__, check, DESIGN, PLANTED))
