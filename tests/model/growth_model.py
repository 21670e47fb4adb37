#!/usr/bin/env python3
"""An exhaustive model of one key while the shard splits the key's block of the index in two.

    growth_model.py            every configuration, and every planted defect
    growth_model.py --trace D  a shortest run that breaks the planted defect D

The exit code is 0 only if every configuration holds and every planted defect is found.

The model explores every interleaving of a split's stores with gets of clients that know of the split or do not. Puts
and deletes come in between, and power cuts at any point. The model checks each run for linearizability: after power
cuts, too, every acknowledged or seen value stays.

A split moves the entries whose next bit of the hash is 1 to the same slots of a new block. The key here has that bit.
So its entry is first in the old block, and then in the new one. A split is one step of the shard: only readers and
power cuts see the steps inside it.

    copy      The entry stands in the new block, too.
    flush     The new block becomes persistent.
    publish   One store changes the number of blocks. From here on the key is in the new block.
    fence     The number becomes persistent.
    clear     The slot in the old block becomes free.
    last      That becomes persistent. A restart before this step clears the slot again, after the number is persistent.

Another key may take the free slot. Then the slot's meta is that key's, and a word that came back would lead astray.

A client knows the number of blocks from when it connected, and that number may be old. A get looks where the key is by
that number. If it finds a word, the word counts. For the split clears the slot in the step of the shard that publishes
the split, so no put has come in between.

If the get finds no word, it looks again between two readings of the number of blocks. It looks in the same block, or in
the new one if the meta tells of it. The first reading may be the number that the client knows, if that number makes the
block the key's. The get asks for the second reading when the look has arrived, since Reads in flight together are in no
order. A found word counts if the first reading made the block the key's. A miss counts if both readings did. Otherwise
the get looks again, in the block that the second reading gives.

A scan begins in the old block, at a place before the key's. It reads the block between two readings of the number. The
word that it read counts if the second reading says that the key's place is in that block. Otherwise the scan goes on to
the new block.

The model leaves out other keys, and entries that move within their block. It leaves out versions that are not whole,
which erda_model.py has. Here one step publishes a put and makes it persistent.
"""
import sys
from collections import namedtuple

from _explore import explore
from _program import main

# old: the key's slot in the old block: a value, None, or OTHER.
# new: the key's slot in the new block.
# taken: the old slot's meta is another key's.
# depth: 1 once the number of blocks counts the new block.
Words = namedtuple("Words", "old new taken depth")
# visible: the words that readers see.
# durable: the words that the medium has.
# split: the next step of the split, or 0.
# other: how far another key is that takes the old slot.
# restart: the next step of a recovery, or 0.
# cuts: the number of power cuts and deaths so far.
# knows: the depth that a client learned when it connected.
State = namedtuple("State", "visible durable split other restart puts gets cuts knows")
# phase: 0 not begun; 1 asked; 3 done at the shard; 4 acknowledged; 9 unknown for ever.
Put = namedtuple("Put", "phase")
# phase: 0 not begun; 1 about to read the slot; 8 done; 9 lost.
# In a look between two readings: 2 about to read the number; 3 the slot; 4 the number again.
# In phase 5 the second reading has arrived before the slot.
# block: 0 the old one, 1 the new one.
# first: the first reading.
# seen: the word of the slot; in phase 5 the second reading.
Get = namedtuple("Get", "phase block first seen", defaults=(0, 0, None))
NEW_GET, DONE_GET, LOST_GET = Get(0), Get(8), Get(9)
OTHER = "another key"
SPLIT = ("copy", "flush", "publish", "fence", "clear", "last")
RESTART = ("number", "clear")


class Config:
    # far: the slot is in the second half of the key's neighbourhood, where a get looks only between two readings.
    # process: cuts may be deaths of the process alone, which leave the caches.
    # scans: scans instead of gets.
    def __init__(self, values, gets, cuts=0, begins_absent=False, far=False, process=False, scans=False):
        self.values, self.gets, self.cuts, self.begins_absent, self.far = values, gets, cuts, begins_absent, far
        self.process, self.scans = process, scans
        self.defect = None


def split_steps(c):
    steps = list(SPLIT)
    if c.defect == "published-first":
        steps.remove("publish")
        steps.insert(0, "publish")
    if c.defect == "new-not-flushed":
        steps.remove("flush")
    if c.defect == "cleared-first":
        steps.remove("clear")
        steps.insert(2, "clear")
    if c.defect == "cleared-unfenced":
        steps.remove("fence")
    if c.defect == "not-cleared":
        steps.remove("clear")
    if c.defect == "taken-unfenced":
        steps.remove("last")
    return steps


def restart_steps(c):
    return RESTART[::-1] if c.defect == "freed-before-number" else RESTART


def initial(c):
    words = Words(None if c.begins_absent else 0, None, False, 0)
    return State(words, words, 0, 0, 0, (Put(0),) * len(c.values), (NEW_GET,) * c.gets, 0, 0)


def with_put(s, i, phase):
    return s._replace(puts=s.puts[:i] + (Put(phase),) + s.puts[i + 1:])


def steps(c, s):
    """Yields (label, next state, events)."""
    if s.restart:
        yield from restart(c, s)
    elif s.split:
        todo = split_steps(c)
        step = todo[s.split - 1]
        yield f"split: {step}", after_split_step(s, step, s.split + 1 if s.split < len(todo) else 0), ()
    else:
        yield from shard_steps(c, s)
    for i, put in enumerate(s.puts):
        if put.phase == 0 and (i == 0 or s.puts[i - 1].phase > 0):
            yield f"put{i} asks", with_put(s, i, 1), (("inv", ("put", i)),)
        elif put.phase == 3 and not s.restart:
            yield f"put{i} acknowledged", with_put(s, i, 4), (("ret", ("put", i), None),)
    for i, g in enumerate(s.gets):
        if not s.restart:
            yield from get_steps(c, s, i, g)
    if s.cuts < c.cuts:
        yield from power_cuts(s)
        if c.process:
            yield "the process dies", restarted(s, s.visible, s.durable), (("cut",),)


def shard_steps(c, s):
    v, d = s.visible, s.durable
    if v.depth == 0:
        yield "the split begins", s._replace(split=1), ()
    slot = "new" if v.depth else "old"
    for i, value in enumerate(c.values):
        if s.puts[i].phase == 1:
            t = s._replace(visible=v._replace(**{slot: value}), durable=d._replace(**{slot: value}))
            yield f"put{i} writes {value} into the {slot} block", with_put(t, i, 3), ()
    if v.depth and v.old is None and s.other == 0 and c.cuts:
        yield "another key describes itself in the old slot", s._replace(visible=v._replace(taken=True), other=1), ()
    elif s.other == 1:
        fenced = d._replace(old=v.old, taken=True)
        yield "that is persistent", s._replace(durable=fenced, other=2), ()
    elif s.other == 2:
        t = s._replace(visible=v._replace(old=OTHER), durable=d._replace(old=OTHER), other=3)
        yield "another key is there", t, ()


def after_split_step(s, step, split):
    v, d = s.visible, s.durable
    if step == "copy":
        v = v._replace(new=v.old)
    elif step == "flush":
        d = d._replace(new=v.new)
    elif step == "publish":
        v = v._replace(depth=1)
    elif step == "fence":
        d = d._replace(depth=v.depth)
    elif step == "clear":
        v = v._replace(old=None)
    elif step == "last":
        d = d._replace(depth=v.depth, old=v.old)
    return s._replace(visible=v, durable=d, split=split)


def restarted(s, visible, durable):
    puts = tuple(Put(9) if p.phase in (1, 3) else p for p in s.puts)
    gets = tuple(LOST_GET if 0 < g.phase < 8 else g for g in s.gets)
    # A key that has described itself, and has no entry, leaves nothing.
    return s._replace(visible=visible, durable=durable, split=0, other=3 if visible.old == OTHER else 0, restart=1,
                      puts=puts, gets=gets, cuts=s.cuts + 1, knows=visible.depth)


def power_cuts(s):
    """Keeps or loses each word that is not persistent. Clients connect again, and learn the number of blocks."""
    lost = [name for name in Words._fields if getattr(s.visible, name) != getattr(s.durable, name)]
    for kept in range(1 << len(lost)):
        words = s.durable._replace(**{n: getattr(s.visible, n) for k, n in enumerate(lost) if kept >> k & 1})
        yield f"power cut, leaves {tuple(words)}", restarted(s, words, words), (("cut",),)


def restart(c, s):
    """Takes the next step of a restart. An entry in an old block is left over if its meta says that it belongs to the
    new one."""
    todo = restart_steps(c)
    step = todo[s.restart - 1] if s.restart <= len(todo) else None
    v, d = s.visible, s.durable
    events = ()
    if step == "number":
        d = d._replace(depth=v.depth)
    elif v.depth:
        if v.old not in (None, OTHER):
            if v.taken:
                events = (("astray",),)                                 # The word stands beside another key's meta.
            v = v._replace(old=None)
        d = d._replace(old=v.old, taken=v.taken)                        # The shard flushes the whole block.
    last = s.restart >= len(todo)
    yield f"restart: {step}", s._replace(visible=v, durable=d, restart=0 if last else s.restart + 1), events


def get_steps(c, s, i, g):
    op = ("get", i)
    v = s.visible

    def get(new):
        return s._replace(gets=s.gets[:i] + (new,) + s.gets[i + 1:])

    def done(value):
        return get(DONE_GET), (("ret", op, value),)

    word = v.new if g.block else v.old
    word = None if word == OTHER else word
    if c.scans and g.phase > 0:
        yield from scan_steps(c, s, i, g, word, get, done)
    elif g.phase == 0:
        if c.scans and (i == 0 or s.gets[i - 1].phase >= 8):
            yield f"scan{i} begins", get(Get(2)), (("inv", op),)
        elif i == 0 or s.gets[i - 1].phase >= 8:
            for knows in {s.knows, v.depth} if not s.split else {s.knows}:
                yield (f"get{i} begins, in the {('old', 'new')[knows]} block", get(Get(1, knows)),
                       (("inv", op),))
    elif g.phase == 1:
        if word is not None and not c.far:
            yield (f"get{i} returns {word}",) + done(word)
            return
        if word is None:                                                # It looked at the whole neighbourhood.
            yield f"get{i} finds nothing, confirms that", get(Get(4, g.block, g.block)), ()
        yield f"get{i} finds nothing, looks again by what it knows", get(Get(3, g.block, g.block)), ()
        for block in {g.block, 1}:  # 1: some meta tells of the new block, or is damaged.
            yield f"get{i} finds nothing, looks again in block {block}", get(Get(2, block)), ()
    elif g.phase == 2:
        yield f"get{i} reads the number: {v.depth}", get(Get(3, g.block, v.depth)), ()
    elif g.phase == 3 and c.defect == "reads-in-one-batch" and g.seen is None:
        yield f"get{i} reads the number behind first: {v.depth}", get(g._replace(phase=5, seen=v.depth)), ()
    elif g.phase == 5:
        if word is not None and g.first == g.block:
            yield (f"get{i} returns {word}",) + done(word)
        elif g.first == g.block and g.seen == g.block:
            yield (f"get{i} returns None",) + done(None)
        else:
            yield f"get{i} looks again in block {g.seen}", get(Get(2, g.seen)), ()
    elif g.phase == 3:
        if word is not None and (g.first == g.block or c.defect == "found-without-number"):
            yield (f"get{i} returns {word}",) + done(word)
        else:
            yield f"get{i} finds nothing that counts", get(g._replace(phase=4, seen=word)), ()
    elif g.phase == 4:
        before = g.first == g.block or c.defect == "missed-by-the-second-number"
        behind = v.depth == g.block or c.defect == "missed-by-the-first-number"
        if before and behind and (g.seen is None or g.first == g.block):
            yield (f"get{i} returns None",) + done(None)
        else:
            yield f"get{i} looks again in block {v.depth}", get(Get(2, v.depth)), ()


def scan_steps(c, s, i, g, word, get, done):
    number = s.visible.depth
    if g.phase == 2:
        yield f"scan{i} reads the number: {number}", get(Get(3, g.block, number)), ()
        yield f"scan{i} knows the number: {g.block}", get(Get(3, g.block, g.block)), ()
    elif g.phase == 3:
        yield f"scan{i} reads {word} in block {g.block}", get(g._replace(phase=4, seen=word)), ()
    elif g.phase == 4:
        by = g.first if c.defect == "scanned-by-the-first-number" else number
        if by == g.block:
            yield (f"scan{i} tells {g.seen}",) + done(g.seen)
        else:
            yield f"scan{i} goes on to block {number}", get(Get(2, 1)), ()


# --- The specification is a register. The monitor keeps every (value, open operations, operations that took effect)
# that the events so far allow.

class Monitor:
    def __init__(self, c):
        self.values = c.values
        first = None if c.begins_absent else 0
        self.start = frozenset({(first, frozenset(), frozenset())})

    def after(self, configs, event):
        out = set()
        if event[0] == "inv":
            return frozenset((v, open_ | {event[1]}, done) for v, open_, done in configs)
        for value, open_, done in self.close(configs):
            if event[0] == "astray":
                continue
            if event[0] == "cut":
                out.add((value, frozenset(), frozenset()))
                continue
            taken = dict(done)
            if event[1] in taken and taken[event[1]] == event[2]:
                out.add((value, open_ - {event[1]}, frozenset((k, r) for k, r in done if k != event[1])))
        return frozenset(out)

    def holds(self, configs):
        return bool(configs)

    def close(self, configs):
        seen, todo = set(configs), list(configs)
        while todo:
            value, open_, done = todo.pop()
            for op in open_ - {k for k, _ in done}:
                put = op[0] == "put"
                nxt = (self.values[op[1]] if put else value, open_, done | {(op, None if put else value)})
                if nxt not in seen:
                    seen.add(nxt)
                    todo.append(nxt)
        return seen


def check(c, limit=5_000_000):
    return explore(initial(c), lambda s: steps(c, s), Monitor(c), limit)


DESIGN = {
    "gets alone": Config((), 2),
    "a put, gets": Config((1,), 2),
    "two puts, gets": Config((1, 2), 2),
    "a put and a delete, gets": Config((1, None), 2),
    "a new key, gets": Config((1,), 2, begins_absent=True),
    "a new key that goes again, gets": Config((1, None), 2, begins_absent=True),
    "far from its home: gets alone": Config((), 2, far=True),
    "far from its home: a put and a delete, gets": Config((1, None), 2, far=True),
    "far from its home: a new key that goes again, gets": Config((1, None), 2, begins_absent=True, far=True),
    "a put, power cut": Config((1,), 2, cuts=1),
    "a put and a delete, power cut": Config((1, None), 1, cuts=1),
    "two puts, two power cuts": Config((1, 2), 1, cuts=2),
    "a new key, two power cuts": Config((1,), 1, cuts=2, begins_absent=True),
    "a put, two cuts or deaths of the process": Config((1,), 1, cuts=2, process=True),
    "two puts, scans": Config((1, 2), 2, scans=True),
    "a put and a delete, scans": Config((1, None), 2, scans=True),
    "a new key that goes again, scans": Config((1, None), 2, begins_absent=True, scans=True),
    "a put and a delete, scans, power cut": Config((1, None), 1, cuts=1, scans=True),
    "a put and a delete, two cuts or deaths": Config((1, None), 1, cuts=2, process=True),
}
PLANTED = {
    "published-first": Config((), 1, far=True),                         # Before the entry is there.
    "new-not-flushed": Config((), 1, cuts=1),
    "cleared-first": Config((), 1),
    "cleared-unfenced": Config((), 1, cuts=1),                          # Before the number is persistent.
    "not-cleared": Config((1,), 1),
    "taken-unfenced": Config((), 1, cuts=1),
    "freed-before-number": Config((), 1, cuts=2, process=True),
    "found-without-number": Config((None,), 1, cuts=1),
    "missed-by-the-first-number": Config((), 1, far=True),
    "missed-by-the-second-number": Config((), 1, far=True),
    "reads-in-one-batch": Config((), 1, far=True),
    "scanned-by-the-first-number": Config((), 1, scans=True),
}


if __name__ == "__main__":
    sys.exit(main(__doc__, check, DESIGN, PLANTED))
