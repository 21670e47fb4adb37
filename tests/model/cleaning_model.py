#!/usr/bin/env python3
"""An exhaustive model of the two phases in which a region is cleaned, merge and replicate, for one key.

    cleaning_model.py            every configuration, and every planted defect
    cleaning_model.py --trace D  a shortest run that breaks the planted defect D

The exit code is 0 only if every configuration holds and every planted defect is found.

Puts, deletes, gets, power cuts and deaths are those of erda_model.py. Here the addresses from 1 on are one region.
Nothing else is appended to it once it is full. Later versions and all copies stand elsewhere.

A place holds the region while one of these holds:

    - its version is in flight: its client may still write there, or the shard has not settled it;
    - a reader comes there along `previous`: a newer version is in flight, and no version as new as this one is settled;
    - it is a chunk that a client has. The put of the chunk has no other place there.

The cleaning of the region goes through these phases (src/server/cleaning/merged_regions.h, region_walk.cc):

    full        The region is full. A merge may begin at any time. The shard then notes the places that hold the region.
    merge       The cleaner walks the region, and passes the places noted. It copies what the entry names as settled.
    merged      The region waits for its holders.
    replicate   Nothing holds the region. The cleaner walks the places noted, and copies what settled there since.
    emptied     Nothing holds the region, and the entry names nothing there. The region may be used again.

The cleaner looks at the entry, and later the shard looks again and lets the entry name the copy. Between the two, other
steps come. The shard stores that without a fence. It fences before it empties the region.

The model checks two things beside linearizability. No client writes into a region that was emptied. A replicate phase
leaves nothing in the region that the entry names.

The defect "reuses-held" shows why a region is given back as a whole. There the shard puts other versions where the
merge has copied a version away, in a region that is still held. The objects of a region verify by its generation, and
the generation cannot change while a client may write there. So a get that read the entry earlier takes the new version
for the one that the entry named.
"""
import sys
from collections import namedtuple

import erda_model as key
from _explore import explore
from _program import main
from erda_model import D, I, L, P, R, puts

# phase: "filling", "full", "merge", "merged", "replicate" or "emptied".
# at: the place to which the walk has come.
# held: the places that held the region when the merge began.
# copy: (from, version) that the cleaner has copied, and that the shard has not seen; or None.
# chunk: a client has the chunk in the region.
Region = namedtuple("Region", "phase at held copy chunk")
State = namedtuple("State", "key region")
CHUNK = 1  # The place of the put that stands in the chunk.


class Config(key.Config):
    def __init__(self, ops, gets, places, chunk=None, **kw):
        # places: how many versions fill the region. chunk: the put that stands in a chunk there, or None.
        super().__init__(ops, gets, **kw)
        self.places, self.chunk = places, chunk


def initial(c):
    s = key.initial(c)
    if c.chunk is not None:
        s = s._replace(log=s.log + (None,))
    return State(s, Region("filling", 0, frozenset(), None, c.chunk is not None))


def is_written(s, i, a):
    """Returns true if the client of put i may still write its value at the place."""
    return s.puts[i].addr == a and s.puts[i].phase in (2, 6)


def leads_on(s, a):
    """Returns true if a reader may come to the place along `previous`."""
    v, w = s.log[a], s.word
    if v is None or w.settled or w.new is None or s.log[w.new] is None or v.rank >= s.log[w.new].rank:
        return False
    return w.old is None or s.log[w.old] is None or v.rank > s.log[w.old].rank


def holds(c, state, a):
    s = state.key
    if a == CHUNK and state.region.chunk:
        return True
    in_flight = s.word.new == a and not s.word.settled  # Also when it has arrived: the shard has not settled it.
    if in_flight or any(is_written(s, i, a) for i in range(len(s.puts))):
        return True
    return c.defect != "empties-passed" and leads_on(s, a)


def holders(c, state):
    return frozenset(a for a in range(1, c.places + 1) if a < len(state.key.log) and holds(c, state, a))


def names(c, s):
    """Returns the places in the region that the entry names."""
    w = s.word
    named = (w.new,) if w.settled else (w.new, w.old)
    return [a for a in named if a is not None and 1 <= a <= c.places]


def names_settled(s, a):
    return (s.word.new == a and s.word.settled) or (s.word.old == a and not s.word.settled)


def relocated(s, a, b):
    """Returns the state in which the version at a, the last one, stands at b."""
    log = s.log[:b] + (s.log[a],) + s.log[b + 1:a]
    word = s.word._replace(new=b if s.word.new == a else s.word.new)
    return s._replace(log=log, word=word, puts=tuple(p._replace(addr=b) if p.addr == a else p for p in s.puts))


# --- Every step that can come next

def steps(c, state):
    s, region = state
    for label, t, events in key.steps(c, s):
        for placed in places_of(c, state, label, t):
            yield label, State(placed, after_events(region, events)), events
    yield from clients(c, state)
    if not s.busy:
        yield from cleaner(c, state)


def places_of(c, state, label, t):
    """Yields the states in which the version that this step publishes may stand."""
    s, region = state
    published = label.endswith("published") and len(t.log) == len(s.log) + 1
    if published and c.chunk is not None and region.chunk and label == f"put{c.chunk} published":
        yield relocated(t, len(s.log), CHUNK)
        return
    yield t
    if published and c.defect == "reuses-held" and region.phase == "merged" and region.held:
        for a in range(1, c.places + 1):
            if a not in region.held and a not in names(c, s) and not holds(c, state, a):
                yield relocated(t, len(s.log), a)


def after_events(region, events):
    """After a restart no client has anything, and a region that was not emptied is as good as unmerged."""
    if not any(e[0] in ("cut", "crash") for e in events):
        return region
    emptied = region.phase in ("filling", "emptied")
    return Region(region.phase if emptied else "full", 0, frozenset(), None, False)


def clients(c, state):
    s, region = state
    late = (("ret", ("write", 0), "into a region that was emptied"),)
    if region.chunk:
        placing = c.chunk is not None and s.puts[c.chunk].phase == 1 and s.puts[c.chunk].alive
        if region.phase == "emptied":
            yield "the client writes into its chunk", state, late
        if not placing and not s.busy and c.defect != "reuses-held":
            yield "the chunk is given back", State(s, region._replace(chunk=False)), ()
    if region.phase == "emptied":
        for i, p in enumerate(s.puts):
            if p.phase == 2 and p.addr is not None and p.addr <= c.places and s.log[p.addr] is None:
                yield f"put{i} value lands", state, late


def cleaner(c, state):
    s, region = state
    if region.phase == "filling" and len(s.log) > c.places:
        yield "the region is full", State(s, region._replace(phase="full")), ()
    elif region.phase == "full":
        yield "a merge begins", State(s, Region("merge", 1, holders(c, state), None, region.chunk)), ()
    elif region.phase in ("merge", "replicate"):
        yield from walk(c, state)
    elif region.phase == "merged":
        if c.defect == "empties-held" and not names(c, s):
            yield "the region is emptied", emptied(c, state), ()
        settled = key.settle_current(c, s)
        if settled != s:
            yield "the shard settles what has arrived", State(settled, region), ()
        if not holders(c, state):
            yield from released(c, state)


def released(c, state):
    s, region = state
    if not names(c, s) or c.defect == "replicates-nothing":
        yield "the region is emptied", emptied(c, state), ()
    else:
        yield "a replicate begins", State(s, region._replace(phase="replicate", at=1)), ()


def walk(c, state):
    s, region = state
    if region.copy is not None:
        yield from move(c, state)
        return
    if region.at > c.places:
        yield from end(c, state)
        return
    a = region.at
    looks = (a in region.held) == (region.phase == "replicate") or c.defect == "merges-in-flight"
    needed = looks and names_settled(s, a)
    if looks and c.defect == "merges-in-flight":
        needed = a in (s.word.new, s.word.old)
    on = region._replace(at=a + 1)
    if needed and s.log[a] is not None:
        yield f"the cleaner copies {a}", State(s, on._replace(copy=(a, s.log[a]._replace(left=False)))), ()
    else:
        yield f"the cleaner passes {a}", State(s, on), ()


def move(c, state):
    """The shard lets the entry name the copy, if it still names the original as settled."""
    s, region = state
    a, version = region.copy
    region = region._replace(copy=None)
    counts = names_settled(s, a) or c.defect == "moves-unchecked"
    if c.defect == "merges-in-flight":
        counts = a in (s.word.new, s.word.old)
    if not counts:
        yield f"the copy of {a} is dead", State(s, region), ()
        return
    b = len(s.log)
    slot = "old" if s.word.old == a and not s.word.settled else "new"
    t = s._replace(log=s.log + (version,), word=s.word._replace(**{slot: b}))
    if c.warm and slot == "new" and s.log[a] is not None and c.defect != "moves-without-leaving":
        t = key.leave(t, a)
    if c.fine:  # The next fence makes it persistent.
        t = t._replace(durable=s.word if s.durable is None else s.durable)
    yield f"the entry names the copy of {a} at {b}", State(t, region), ()


def end(c, state):
    s, region = state
    if region.phase == "merge":
        yield "the merge ends", State(s, region._replace(phase="merged", at=0)), ()
    elif names(c, s):  # In the code another merge would follow.
        yield "the replicate leaves something", state, (("ret", ("replicate", 0), "leaves something"),)
    else:
        yield "the region is emptied", emptied(c, state), ()


def emptied(c, state):
    s, region = state
    log = tuple(None if 1 <= a <= c.places else v for a, v in enumerate(s.log))
    durable = s.durable if c.defect == "emptied-not-fenced" else None
    return State(s._replace(log=log, durable=durable), region._replace(phase="emptied", at=0, held=frozenset()))


def tidy(c, state):
    s, region = state
    t = key.tidy(c, s)
    if region.phase != "filling" or c.chunk is not None:  # Nothing is appended to the region.
        filled = min(len(s.log), c.places + 1)
        t = t._replace(log=t.log + (None,) * (filled - len(t.log)))
    if region.copy is not None and region.copy[1].rank != 0:  # The walk compares no copies.
        region = region._replace(copy=(region.copy[0], region.copy[1]._replace(rank=rank_in(s, t, region.copy))))
    return State(t, region)


def rank_in(s, t, copy):
    """Returns the rank that the copy has among the versions that are left. Its original may be forgotten."""
    a, version = copy
    if a < len(t.log) and t.log[a] is not None:
        return t.log[a].rank
    return version.rank


def check(c, limit=20_000_000):
    return explore(initial(c), lambda s: steps(c, s), key.Monitor(c), limit, lambda s: tidy(c, s))


DESIGN = {
    "a settled and a reserved put": Config(puts(I, P) + puts(R, P), 2, 2),
    "two reserved puts": Config(puts(R, P, P), 2, 2),
    "two reserved puts, a client dies": Config(puts(R, P, P), 1, 2, deaths=1),
    "a reserved put is in flight, another one elsewhere": Config(puts(R, L, L), 2, 1, sweeps=1),
    "placed puts, a client dies, sweeps": Config(puts(R, L, L), 1, 2, deaths=1, sweeps=1),
    "three placed puts, two in the region": Config(puts(R, L, L, L), 1, 2),
    "two reserved puts, power cut": Config(puts(R, P, P), 1, 2, cuts=1, fine=True),
    "a settled and a reserved put, power cut": Config(puts(I, P) + puts(R, P), 1, 2, cuts=1, fine=True),
    "two reserved puts, delete": Config(puts(R, P, P), 1, 2, dels=1),
    "a settled and a reserved put, known versions": Config(puts(I, P) + puts(R, P), 2, 2, warm=True),
    "a put in a chunk": Config(puts(I, P) + puts(D, P), 2, 2, chunk=1),
    "a put in a chunk, power cut": Config(puts(I, P) + puts(D, P), 1, 2, chunk=1, cuts=1, fine=True),
    "a put in a chunk, a reserved put": Config(puts(D, P) + puts(R, P), 1, 2, chunk=0),
    "a put in a chunk, known versions, server crash":
        Config(puts(I, P) + puts(D, P), 1, 2, chunk=1, warm=True, crash=True),
}
PLANTED = {
    # A merge copies a version whose value is on its way.
    "merges-in-flight": Config(puts(R, P), 1, 1),
    # A merge does not look again before the entry names the copy.
    "moves-unchecked": Config(puts(I, P, P), 1, 1),
    # A version does not say that its entry names the copy now. The original stands in a held region for long.
    "moves-without-leaving": Config(puts(I, P, P), 1, 1, warm=True),
    # The region is emptied after its merge, though a client may write there.
    "empties-held": Config(puts(R, P) + puts(I, P), 0, 1),
    # The region is emptied though a reader comes there along `previous`.
    "empties-passed": Config(puts(R, L, L), 1, 1),
    # The region is emptied when nothing holds it any more, without a look at what settled there.
    "replicates-nothing": Config(puts(R, P), 1, 1),
    # The entries that name the copies are not persistent when the region is emptied.
    "emptied-not-fenced": Config(puts(I, P), 1, 1, cuts=1, fine=True),
    # A place is used again in a region that is still held: its generation is the same.
    "reuses-held": Config(puts(I, P, P) + puts(D, P), 2, 2, chunk=2),
}


if __name__ == "__main__":
    sys.exit(main(__doc__, check, DESIGN, PLANTED))
