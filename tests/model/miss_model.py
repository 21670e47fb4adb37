#!/usr/bin/env python3
"""An exhaustive model of gets that find no entry, while entries move in a block of the index or a key's window grows.

    miss_model.py            every configuration, and every planted defect
    miss_model.py --trace D  a shortest run that breaks the planted defect D

The exit code is 0 only if every configuration holds and every planted defect is found.

The model explores every interleaving of a move's stores with the Reads of gets, and with puts and deletes between
moves. Reads that are in flight together take their words in any order. The model checks each run for linearizability.

The model covers:

    A move (src/index/free_slots.cc). The counter becomes odd. The entry stands in the new slot, too. The old slot becomes
    free. The counter becomes even. An entry moves away from its home, so to a slot with a higher number.

    A far put (src/index/free_slots.cc, `MakeFarRoom`). The key's neighbourhood has no room, so the window grows. The word
    beside the counter tells of that. Then the entry is in the far slot, which no move concerns.

    A get (src/client/between_readings.cc). It knows a reading of the counter from earlier. It reads the slots in any
    order, and returns the value if it finds the entry. Otherwise it reads the counter when the slots have arrived. If
    both readings are equal and even, the key is absent in the window that the get looked at. If the word beside the
    counter tells of a larger window, the get reads the far slot, and then the counter again. If the readings differ,
    the get knows the later one from then on, and looks again.

A scan looks at a block in the same way (src/client/block.cc). The model leaves out splits (growth_model.py) and
versions.
"""
import sys
from collections import namedtuple

from _explore import explore
from _program import main
from growth_model import Monitor, Put

SLOTS = 3
FAR = SLOTS  # The slot that only the larger window has.
# slots: for each slot a value or None.
# told: the control block tells of the larger window.
# move: (stage, from, to), or None.
# moves: the number of moves that have begun.
State = namedtuple("State", "slots counter told move moves puts gets")
# phase: 0 not begun; 1 looks; 2 about to read the counter; 8 done.
# `before`: the reading of the counter before the look.
# `behind`: the reading after the look.
# todo: the slots and readings that have not arrived yet.
# found: (slot, value) of each entry that the get has found.
# far: the get looks at the far slot, too.
Get = namedtuple("Get", "phase before behind todo found far", defaults=(0, None, frozenset(), (), False))
LOOK = frozenset(range(SLOTS))


class Config:
    def __init__(self, values, gets, moves, begins_absent=False, far=False):
        self.values, self.gets, self.moves, self.begins_absent = values, gets, moves, begins_absent
        self.far = far  # Puts may find no room in the neighbourhood.
        self.defect = None


def initial(c):
    slots = (None if c.begins_absent else 0,) + (None,) * SLOTS
    return State(slots, 0, False, None, 0, (Put(0),) * len(c.values), (Get(0),) * c.gets)


def stored(slots, slot, value):
    return slots[:slot] + (value,) + slots[slot + 1:]


def steps(c, s):
    """Yields (label, next state, events)."""
    yield from move_steps(c, s) if s.move else shard_steps(c, s)
    for i, put in enumerate(s.puts):
        def with_phase(phase, i=i):
            return s._replace(puts=s.puts[:i] + (Put(phase),) + s.puts[i + 1:])
        if put.phase == 0 and (i == 0 or s.puts[i - 1].phase > 0):
            yield f"put{i} asks", with_phase(1), (("inv", ("put", i)),)
        elif put.phase == 3:
            yield f"put{i} acknowledged", with_phase(4), (("ret", ("put", i), None),)
    for i, g in enumerate(s.gets):
        yield from get_steps(c, s, i, g)


def shard_steps(c, s):
    at = next((slot for slot, value in enumerate(s.slots) if value is not None), None)
    for i, value in enumerate(c.values):
        if s.puts[i].phase == 1:
            for slot in range(SLOTS) if at is None and value is not None else (at,):
                slots = s.slots if slot is None else stored(s.slots, slot, value)
                puts = s.puts[:i] + (Put(3),) + s.puts[i + 1:]
                yield f"put{i} stores {value} in slot {slot}", s._replace(slots=slots, puts=puts), ()
            if c.far and at is None and value is not None:
                yield from far_put_steps(c, s, i, value)
    if c.defect == "told-behind" and s.slots[FAR] is not None and not s.told:
        yield "the larger window is told", s._replace(told=True), ()
    if at is not None and at != FAR and s.moves < c.moves:
        for to in range(at + 1, SLOTS):
            yield f"a move from {at} to {to} begins", s._replace(move=(0, at, to), moves=s.moves + 1), ()


def far_put_steps(c, s, i, value):
    if not s.told and c.defect != "told-behind":
        yield "the larger window is told", s._replace(told=True), ()
        return
    puts = s.puts[:i] + (Put(3),) + s.puts[i + 1:]
    yield f"put{i} stores {value} in the far slot", s._replace(slots=stored(s.slots, FAR, value), puts=puts), ()


def move_steps(c, s):
    stage, at, to = s.move
    order = ["odd", "copy", "free", "even"]
    if c.defect == "counted-behind":
        order = ["copy", "free", "odd", "even"]
    step = order[stage]
    if step in ("odd", "even"):
        t = s._replace(counter=s.counter + 1)
    elif step == "copy":
        t = s._replace(slots=stored(s.slots, to, s.slots[at]))
    else:
        t = s._replace(slots=stored(s.slots, at, None))
    move = None if stage + 1 == len(order) else (stage + 1, at, to)
    yield f"move: {step}", t._replace(move=move), ()


def get_steps(c, s, i, g):
    op = ("get", i)

    def get(new):
        return s._replace(gets=s.gets[:i] + (new,) + s.gets[i + 1:])

    def looking(before):
        todo = LOOK | {FAR} if g.far else LOOK
        if c.defect in ("reads-in-one-batch", "three-reads-in-one-batch"):
            todo |= {"behind"}
        if c.defect == "three-reads-in-one-batch":
            todo |= {"before"}
        return Get(1, before, None, todo, far=g.far)

    def decided(g, told):
        before_counts = g.before % 2 == 0 or c.defect == "odd-reading-counts"
        if before_counts and (g.before == g.behind or c.defect == "not-confirmed"):
            if told and not g.far and c.defect != "reach-not-seen":
                return f"get{i} looks farther", get(Get(1, g.before, None, frozenset({FAR}), far=True)), ()
            return f"get{i} returns None", get(Get(8)), (("ret", op, None),)
        return f"get{i} looks again", get(after_reading(g.behind)), ()

    def after_reading(counter):
        even = counter % 2 == 0 or c.defect == "odd-reading-counts"
        return looking(counter) if even else Get(2, counter, far=g.far)

    if g.phase == 0 and (i == 0 or s.gets[i - 1].phase == 8):
        for known in {0, s.counter}:  # The get knows the counter from any earlier Read.
            for far in {False, s.told and c.defect != "reach-not-seen"}:
                g = Get(0, far=far)
                yield f"get{i} begins, knows {known}, {far}", get(after_reading(known)), (("inv", op),)
    elif g.phase == 1 and g.todo:
        for what in sorted(g.todo, key=str):
            rest = g._replace(todo=g.todo - {what})
            if what in ("before", "behind"):
                yield f"get{i} reads the counter {what}: {s.counter}", get(rest._replace(**{what: s.counter})), ()
            else:
                value = s.slots[what]
                found = tuple(sorted(g.found + ((what, value),))) if value is not None else g.found
                yield f"get{i} reads slot {what}: {value}", get(rest._replace(found=found)), ()
    elif g.phase == 1 and g.found:
        value = g.found[0][1]
        yield f"get{i} returns {value}", get(Get(8)), (("ret", op, value),)
    elif g.phase == 1 and g.behind is not None:
        yield decided(g, s.told)
    elif g.phase == 1:
        yield f"get{i} has the slots", get(g._replace(phase=2)), ()
    elif g.phase == 2:
        yield decided(g._replace(behind=s.counter), s.told)  # One Read has both words.


def check(c, limit=5_000_000):
    return explore(initial(c), lambda s: steps(c, s), Monitor(c), limit)


DESIGN = {
    "a move, a get": Config((), 1, 1),
    "two moves, two gets": Config((), 2, 2),
    "a put, moves, gets": Config((1,), 2, 2),
    "a put and a delete, moves, a get": Config((1, None), 1, 2),
    "a delete and a put, moves, gets": Config((None, 1), 2, 1),
    "a new key, moves, gets": Config((1,), 2, 2, begins_absent=True),
    "a new key that goes and comes again, a move, a get": Config((1, None, 2), 1, 1, begins_absent=True),
    "a new key, perhaps far, gets": Config((1,), 2, 1, begins_absent=True, far=True),
    "a key that goes and comes again, perhaps far, a get": Config((None, 1), 1, 1, far=True),
    "a new key, perhaps far, that goes and comes again, a get": Config((1, None, 2), 1, 0, True, far=True),
}
PLANTED = {
    "reads-in-one-batch": Config((), 1, 1),         # The reading after the look goes along with the slots.
    "three-reads-in-one-batch": Config((), 1, 1),   # The reading before it, too.
    "not-confirmed": Config((), 1, 1),
    "odd-reading-counts": Config((), 1, 1),
    "counted-behind": Config((), 1, 1),
    "reach-not-seen": Config((1,), 1, 0, begins_absent=True, far=True),
    "told-behind": Config((1,), 1, 0, begins_absent=True, far=True),  # After the entry that needs it.
}


if __name__ == "__main__":
    sys.exit(main(__doc__, check, DESIGN, PLANTED))
