#!/usr/bin/env python3
"""An exhaustive model of a small NVM in front of a journal's disk, with power cuts and kills at every step.

    front_model.py            every configuration, and every planted defect
    front_model.py --trace D  a shortest run that breaks the planted defect D

The exit code is 0 only if every configuration holds and every planted defect is found.

The stream of one shard has a few bytes. The shard appends them, has its part of the front get them, and answers. The
disk's thread writes the stream to the ring and flushes. A power cut keeps any of the stores that no fence followed, and
any beginning of what the ring got since its last flush. A kill keeps all stores, and the stream in memory. Then the
server starts again, with or without the front. A byte is the number of the life that appended it, so a byte that an
earlier life left is another byte.

The model covers:

    A part of the front (src/journal/front_part.cc): `Append`, `Release`, `PersistReleased`, `Format`, `Open`.

    Its use (src/journal/shard_front.cc): from which place it appends, and what counts as held.

    The start (src/journal/starting.cc): the ring first, then the bytes of the part. Then the ring begins an epoch
    at the end of both, and the part is made again. Then the ring names the front, before the front holds anything.

The model checks:

    - A start after a power cut finds all that was acknowledged, with the bytes that were acknowledged.
    - The part has the bytes that it says it has. A start needs only those after the end of the ring. But a disk that
      lied may have lost the end of the ring, and then the server must notice.
    - The front never begins after the end of the ring. It is always of the ring's epoch if the ring names it.

The model leaves out what journal_model.py has: the image, the pool file, torn records and the rules of versions.
"""
import sys
from collections import namedtuple

from _explore import explore
from _program import main

NONE = 99  # The greatest place: such a `released` says that the part has no bytes.
RELEASED, END, EPOCH, CELLS = 0, 1, 2, 3  # The words of the part. The cells of its area follow.


class Config:
    # bytes: the most that the stream gets. cells: the size of the part's area.
    def __init__(self, bytes, cells, cuts=1, kills=0, switches=False):
        self.bytes, self.cells, self.cuts, self.kills, self.switches = bytes, cells, cuts, kills, switches
        self.defect = None


# stream: for each place the life that appended it.
#
# written, held: the ends of what the ring has got, and of what it has for good.
#
# epoch, named: of the ring's last checkpoint: the epoch, and whether the ring names a front.
#
# medium: the words of the front that are persistent. stores: those that are not yet, in their order: (word, value).
#
# todo: the steps that the server's thread is about to do. They are tuples. The first element names the step.
#
# has_front: the present life has a front.
#
# end, released, durable: what the part's object knows.
#
# acknowledged: the place up to which clients have answers.
#
# off: the machine has no power, or the server is dead and its memory is there ("killed").
State = namedtuple("State", "life stream written held epoch named medium stores todo has_front end released durable "
                            "acknowledged off cuts kills")


def initial(c):
    medium = (NONE, 0, 0) + (0,) * c.cells
    return State(0, (), 0, 0, 0, False, medium, (), (), False, 0, 0, 0, 0, "off", 0, 0)


def word(s, at):
    """Returns what the caches have."""
    for where, value in reversed(s.stores):
        if where == at:
            return value
    return s.medium[at]


def put(t, i, x):
    return t[:i] + (x,) + t[i + 1:]


def settled(medium, stores):
    for at, value in stores:
        medium = put(medium, at, value)
    return medium


def steps(c, s):
    """Yields (label, next state, events)."""
    if s.off == "off":
        for with_front in ((True, False) if c.switches else (True,)):
            if with_front or not s.named:
                yield from start(c, s, with_front)
        return
    if s.off == "killed":
        for with_front in ((True, False) if c.switches else (True,)):
            if with_front or not s.named:
                yield from go_on(c, s, with_front)
        return
    if s.todo:
        yield do_next(c, s)
    else:
        yield from serve(c, s)
    yield from disk(c, s)
    if s.cuts < c.cuts:
        for medium in left_of(s):
            for written in range(s.held, s.written + 1):
                yield ("power cut", s._replace(medium=medium, stores=(), todo=(), written=written, off="off",
                                               cuts=s.cuts + 1), ())
    # A start that is killed begins again as after a power cut.
    if s.kills < c.kills and not any(step[0] == "ready" for step in s.todo):
        yield "kill", s._replace(todo=(), off="killed", kills=s.kills + 1), ()


def left_of(s):
    """The words after a power cut: each has one of the values that it had since the last fence."""
    kept = {s.medium}
    for at, value in s.stores:
        kept |= {put(medium, at, value) for medium in kept}
    return kept


# --- The server serves

def serve(c, s):
    if len(s.stream) < c.bytes:
        yield "shard: appends to the stream", s._replace(stream=s.stream + (s.life,)), ()
    held = max(s.held, s.end) if s.has_front else s.held
    if held > s.acknowledged:
        yield f"shard: answers up to {held}", s._replace(acknowledged=held), ()
    if s.has_front and s.end < len(s.stream):
        # The disk holds this much, so the part does not need it.
        release = s.written if c.defect == "releases-before-held" else s.held
        released = min(max(release, s.released), s.end)
        t = s._replace(released=released)
        yield from append(c, t, t.end)
        if s.held > s.end:
            yield from append(c, t, s.held)


def append(c, s, begin):
    end = len(s.stream)
    leaves_out = begin > s.end
    first = begin if leaves_out else s.released
    if end <= begin or end - first > c.cells:
        return
    todo = []
    durable = s.durable
    persists = leaves_out or end - s.durable > c.cells
    if persists and c.defect != "reuses-before-released" and not (leaves_out and c.defect == "leaves-out-silently"):
        todo += [("store", RELEASED, first), ("fence",)]
        durable = first
    todo += [("store", CELLS + place % c.cells, s.stream[place] * 10 + place) for place in range(begin, end)]
    if c.defect != "end-with-the-bytes":
        todo += [("fence",)]
    todo += [("store", END, end), ("fence",)]
    if c.defect == "answers-before-end":
        todo.pop()
    todo += [("know", end, first, durable)]
    yield f"shard: the front gets {begin} to {end}", s._replace(todo=tuple(todo)), ()


def do_next(c, s):
    step, rest = s.todo[0], s._replace(todo=s.todo[1:])
    if step[0] == "store":
        return f"stores {step[2]} in word {step[1]}", rest._replace(stores=s.stores + ((step[1], step[2]),)), ()
    if step[0] == "fence":
        return "fence", rest._replace(medium=settled(s.medium, s.stores), stores=()), ()
    if step[0] == "know":
        return f"the part holds up to {step[1]}", rest._replace(end=step[1], released=step[2], durable=step[3]), ()
    if step[0] == "ring":  # The checkpoint is on the disk.
        end = len(s.stream)
        return (f"the ring begins epoch {step[1]} at {end}",
                rest._replace(epoch=step[1], named=step[2], written=end, held=end), ())
    if step[0] == "name":
        return "the ring names the front", rest._replace(named=True), ()
    return "ready", rest, ()


def disk(c, s):
    if any(step[0] == "ready" for step in s.todo):
        return
    if s.written < len(s.stream):
        yield "disk: writes", s._replace(written=len(s.stream)), ()
    if s.held < s.written:
        yield "disk: flushes", s._replace(held=s.written), ()


# --- Starts

def form(epoch, first):
    """FrontPart::Format."""
    return [("store", RELEASED, NONE), ("fence",), ("store", EPOCH, epoch), ("store", END, first), ("fence",),
            ("store", RELEASED, first), ("fence",), ("know", first, first, first)]


def start(c, s, with_front):
    """Without memory: after a power cut."""
    ring_end, released, end = s.written, s.medium[RELEASED], s.medium[END]
    events, found, stream = [], ring_end, s.stream[:ring_end]
    if with_front and s.named:
        if s.medium[EPOCH] != s.epoch or released == NONE:
            events.append("the front is not that of the ring")
        if released > ring_end:
            events.append("the front begins after the end of the ring")
        if end - released > c.cells or any(s.medium[CELLS + place % c.cells] != s.stream[place] * 10 + place
                                           for place in range(released, end)):
            events.append("the part has another byte than it says")
        if c.defect != "ignores-the-front":
            found = max(ring_end, end)
            stream = s.stream[:found]
    if found < s.acknowledged:
        events.append("an acknowledged byte is lost")
    ring = [("ring", s.epoch + 1, False)]
    part = form(s.epoch + 1, found) if with_front else []
    name = [("name",)] if with_front else []
    todo = ring + part + name
    if c.defect == "front-before-ring":
        todo = part + ring + name
    if c.defect == "named-before-made":
        todo = ring + name + part
    if c.defect == "no-new-epoch-in-the-front":
        todo = ring + name
    t = s._replace(life=s.life + 1, stream=stream, todo=tuple(todo + [("ready",)]), has_front=with_front, off=None,
                   end=found, released=found, durable=found, held=ring_end, written=ring_end)
    yield f"starts {'with' if with_front else 'without'} the front, at {found}", t, tuple((e,) for e in events)


def go_on(c, s, with_front):
    """With the memory that a killed server left. Ring::Open flushes what it finds."""
    todo = []
    if with_front and s.named:
        # FrontPart::Open. The dead server may not have come to the fence.
        if c.defect != "trusts-what-it-finds":
            todo += [("store", RELEASED, word(s, RELEASED)), ("store", END, word(s, END)), ("fence",)]
        todo.append(("know", word(s, END), word(s, RELEASED), word(s, RELEASED)))
    elif with_front:
        todo += form(s.epoch, s.written)
        if c.defect != "holds-before-named":
            todo.append(("name",))
    yield (f"goes on {'with' if with_front else 'without'} the front",
           s._replace(todo=tuple(todo), has_front=with_front, off=None, held=s.written), ())


class Monitor:
    """Its value is True: nothing is wrong so far."""
    start = True

    def after(self, m, event):
        return False

    def holds(self, m):
        return m


def check(c, limit=6_000_000):
    return explore(initial(c), lambda s: steps(c, s), Monitor(), limit)


DESIGN = {
    "three bytes, a part of two, two cuts": Config(3, 2, cuts=2),
    "four bytes, a part of two, one cut": Config(4, 2),
    "four bytes, a part of three, one cut": Config(4, 3),
    "three bytes, a cut and a kill": Config(3, 2, cuts=1, kills=1),
    "two bytes, two cuts and a kill": Config(2, 2, cuts=2, kills=1),
    "two bytes, a cut and two kills, with and without the front": Config(2, 2, cuts=1, kills=2, switches=True),
    "two bytes, two cuts, with and without the front": Config(2, 2, cuts=2, switches=True),
}
PLANTED = {
    # FrontPart::Append: no fence comes between the bytes and the end.
    "end-with-the-bytes": Config(1, 2),
    # The answer does not wait for the second fence.
    "answers-before-end": Config(1, 2),
    # PersistReleased is left out, or left out only if bytes are left out.
    "reuses-before-released": Config(3, 2),
    "leaves-out-silently": Config(3, 2),
    # Release gets a place that the disk has not flushed.
    "releases-before-held": Config(3, 2),
    # The start applies the ring alone.
    "ignores-the-front": Config(1, 2),
    # The part is made again before the ring's epoch, or after the ring has named it, or not at all.
    "front-before-ring": Config(1, 2, cuts=2),
    "named-before-made": Config(1, 2, cuts=2),
    "no-new-epoch-in-the-front": Config(2, 2, cuts=2),
    # FrontPart::Open persists nothing.
    "trusts-what-it-finds": Config(1, 2, kills=1),
    # The ring does not name the front.
    "holds-before-named": Config(1, 2, kills=1, switches=True),
}


if __name__ == "__main__":
    sys.exit(main(__doc__, check, DESIGN, PLANTED))
