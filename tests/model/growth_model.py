#!/usr/bin/env python3
"""An exhaustive model of one key while its block of the index is split in two: every interleaving of a split's stores
with gets of clients that know of it or do not, with puts and deletes in between, and with power cuts at any point.
Each run is checked for linearizability: what was acknowledged or seen stays, across power cuts too.

    growth_model.py            every configuration, and every planted defect
    growth_model.py --trace D  a shortest run that breaks the planted defect D

The exit code is 0 only if every configuration holds and every planted defect is found.

What is modelled. A block has a depth: how many low bits of the hash say that a key belongs there. A split makes it one
more, and moves the entries whose next bit is 1 to the same slots of a new block. The key here has that bit: it is in the
old block at first, and in the new one then. Every slot's meta tells the depth of its block. The steps of a split, in one
step of the shard for everybody but readers and the power:

  copy      the entry stands in the new block, too
  flush     the new block is persistent
  publish   the number of blocks, one store: from here on the key is in the new one
  fence     that is persistent
  odd       the counter of moves is odd
  tell      the slot's meta in the old block says the new depth. Nobody waits for that to be persistent
  clear     the slot in the old block is free. Persistent at some time later: a restart clears it anew
  even      the counter of moves is even

A client knows a depth of the block, or an older one, from when it connected. It reads meta and word of a slot in any
order, since a Read is not one moment. If the meta tells a depth that the client does not know, it goes to the new block.
If it does not, and there is a word, that is what it was before the split, which no put has changed since that meta was
read: so the get took effect then. If there is none, it may have been cleared since that meta was read: a miss counts
only if it was read between two equal, even readings of the counter.

What is not modelled: versions that are not whole (erda_model.py has them: here a put is published and persistent in one
step), other keys, entries that move within their block.
"""
import sys
from collections import namedtuple

from _explore import explore

# visible and durable: what readers see, and what the medium has. Words: old and new slot (a value or None), depth (0: not
# split, 1: split), told (the depth that the old slot's meta says), moves (the counter; in DRAM).
Words = namedtuple("Words", "old new depth told moves")
# split: how far; 0: none, or done. knows: the depth that a client has from connecting.
State = namedtuple("State", "visible durable split puts gets cuts knows")
# phase 0 not begun, 1 asked, 3 done at the shard, 4 acknowledged, 9 unknown for ever
Put = namedtuple("Put", "phase")
# phase 0 not begun; 1 about to read a block, 2 half of that read; 3 about to read the counter, after a miss; 4, 5 as 1, 2;
# 6 about to read the counter again; 8 done, 9 lost. moves: of the first reading
Get = namedtuple("Get", "phase knows half seen moves", defaults=(0,))
NEW_GET, DONE_GET, LOST_GET = Get(0, 0, None, None), Get(8, 0, None, None), Get(9, 0, None, None)
STEPS = ("copy", "flush", "publish", "fence", "odd", "tell", "clear", "even")


class Config:
    # far: the slot is in the second half of the key's neighbourhood, where a get looks when it confirms a miss
    def __init__(self, values, gets, cuts=0, begins_absent=False, far=False):
        self.values, self.gets, self.cuts, self.begins_absent, self.far = values, gets, cuts, begins_absent, far
        self.defect = None


def order(c):
    steps = list(STEPS)
    if c.defect == "published-first":
        steps.remove("publish")
        steps.insert(0, "publish")
    if c.defect == "told-first":
        steps.remove("tell")
        steps.insert(0, "tell")
    if c.defect == "new-not-flushed":
        steps.remove("flush")
    if c.defect == "not-told":
        steps.remove("tell")
    if c.defect == "cleared-unfenced":
        steps.remove("fence")
        steps.append("fence")
    if c.defect == "not-counted":
        steps.remove("odd")
        steps.remove("even")
    return steps


def initial(c):
    words = Words(None if c.begins_absent else 0, None, 0, 0, 0)
    return State(words, words, 0, (Put(0),) * len(c.values), (NEW_GET,) * c.gets, 0, 0)


def where(words):
    return "new" if words.depth else "old"


def with_put(s, i, phase):
    return s._replace(puts=s.puts[:i] + (Put(phase),) + s.puts[i + 1:])


def steps(c, s):
    """Yields (label, next state, events)."""
    todo = order(c)
    if s.split:
        step = todo[s.split - 1]
        yield f"split: {step}", after_split_step(s, step, s.split + 1 if s.split < len(todo) else 0), ()
    elif s.visible.depth == 0:
        yield "the split begins", s._replace(split=1), ()
    for i, value in enumerate(c.values):
        op = ("put", i)
        phase = s.puts[i].phase
        if phase == 0 and (i == 0 or s.puts[i - 1].phase > 0):
            yield f"put{i} asks", with_put(s, i, 1), (("inv", op),)
        elif phase == 1 and not s.split:
            slot = where(s.visible)
            t = s._replace(visible=s.visible._replace(**{slot: value}), durable=s.durable._replace(**{slot: value}))
            yield f"put{i} writes {value} into the {slot} block", with_put(t, i, 3), ()
        elif phase == 3:
            yield f"put{i} acknowledged", with_put(s, i, 4), (("ret", op, None),)
    for i, g in enumerate(s.gets):
        yield from get_steps(c, s, i, g)
    if s.cuts < c.cuts:
        yield from power_cuts(s)


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
    elif step == "tell":
        v = v._replace(told=1)
    elif step == "clear":
        v = v._replace(old=None)
    elif step in ("odd", "even"):
        v = v._replace(moves=v.moves + 1)
        d = d._replace(moves=v.moves)
    return s._replace(visible=v, durable=d, split=split)


def power_cuts(s):
    """Each word that is not persistent is kept or lost. Clients connect anew, and learn the depth."""
    lost = [name for name in Words._fields if getattr(s.visible, name) != getattr(s.durable, name)]
    for kept in range(1 << len(lost)):
        words = s.durable._replace(**{n: getattr(s.visible, n) for k, n in enumerate(lost) if kept >> k & 1}, moves=0)
        if words.depth:
            words = words._replace(old=None)                            # what a restart finds to be cleared
        puts = tuple(Put(9) if p.phase in (1, 3) else p for p in s.puts)
        gets = tuple(LOST_GET if 0 < g.phase < 8 else g for g in s.gets)
        t = s._replace(visible=words, durable=words, split=0, puts=puts, gets=gets, cuts=s.cuts + 1,
                       knows=words.depth)
        yield f"power cut, leaves {tuple(words)}", t, (("cut",),)


def get_steps(c, s, i, g):
    op = ("get", i)
    v = s.visible

    def get(new):
        return s._replace(gets=s.gets[:i] + (new,) + s.gets[i + 1:])

    first = 3 if c.far else 1

    def done(value):
        return get(DONE_GET), (("ret", op, value),)

    if g.phase == 0:
        if i == 0 or s.gets[i - 1].phase >= 8:
            yield f"get{i} begins, knows depth {s.knows}", get(Get(first, s.knows, None, None)), (("inv", op),)
            if v.depth != s.knows and not s.split:                      # it has learned of the split meanwhile
                yield f"get{i} begins, knows depth {v.depth}", get(Get(first, v.depth, None, None)), (("inv", op),)
    elif g.phase == 3:
        yield f"get{i} reads the counter: {v.moves}", get(Get(4, g.knows, None, None, v.moves)), ()
    elif g.phase == 6:
        equal = v.moves == g.moves and g.moves % 2 == 0
        if equal or c.defect == "miss-not-counted":
            yield (f"get{i} returns None",) + done(None)
        else:
            yield f"get{i} reads the counter: {v.moves}, and looks again", get(Get(3, g.knows, None, None)), ()
    elif g.phase in (1, 4):
        if not g.knows:                                                 # word and meta, in any order
            yield f"get{i} reads meta: {v.told}", get(g._replace(phase=g.phase + 1, half="meta", seen=v.told)), ()
            yield f"get{i} reads word: {v.old}", get(g._replace(phase=g.phase + 1, half="word", seen=v.old)), ()
        elif v.new is None:
            yield f"get{i} finds nothing in the new block", get(g._replace(phase=3 if g.phase == 1 else 6)), ()
        else:
            yield (f"get{i} returns {v.new} from the new block",) + done(v.new)
    elif g.phase in (2, 5):
        told, word = (g.seen, v.old) if g.half == "meta" else (v.told, g.seen)
        trusts_miss = word is None and c.defect == "miss-without-depth"
        if told and c.defect != "depth-not-seen" and not trusts_miss:
            yield f"get{i} sees the new depth", get(Get(first, 1, None, None)), ()
        elif word is None:
            nothing = g._replace(phase=3 if g.phase == 2 else 6, half=None, seen=None)
            yield f"get{i} finds nothing in the old block", get(nothing), ()
        else:
            yield (f"get{i} returns {word} from the old block",) + done(word)


# --- The specification: a register. The monitor keeps every (value, open operations, those taken effect) that the events
# so far allow.

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


DESIGN = [
    ("gets alone", Config((), 2)),
    ("a put, gets", Config((1,), 2)),
    ("two puts, gets", Config((1, 2), 2)),
    ("a put and a delete, gets", Config((1, None), 2)),
    ("a new key, gets", Config((1,), 2, begins_absent=True)),
    ("a new key that goes again, gets", Config((1, None), 2, begins_absent=True)),
    ("far from its home: gets alone", Config((), 2, far=True)),
    ("far from its home: a put and a delete, gets", Config((1, None), 2, far=True)),
    ("far from its home: a new key that goes again, gets", Config((1, None), 2, begins_absent=True, far=True)),
    ("a put, power cut", Config((1,), 2, cuts=1)),
    ("a put and a delete, power cut", Config((1, None), 1, cuts=1)),
    ("two puts, two power cuts", Config((1, 2), 1, cuts=2)),
    ("a new key, two power cuts", Config((1,), 1, cuts=2, begins_absent=True)),
]
PLANTED = {
    "published-first": Config((), 1, cuts=1),                           # before the entry is there
    "told-first": Config((), 1),
    "new-not-flushed": Config((), 1, cuts=1),
    "not-told": Config((1,), 1),
    "cleared-unfenced": Config((), 1, cuts=1),
    "not-counted": Config((), 1, far=True),
    "miss-not-counted": Config((), 1, far=True),
    "depth-not-seen": Config((1,), 1),
    "miss-without-depth": Config((1,), 1, begins_absent=True),
}
WORDS = {True: "holds", False: "BROKEN", None: "TOO LARGE"}


def main(args):
    if args and not (len(args) == 2 and args[0] == "--trace" and args[1] in PLANTED):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    bad = 0
    for name in args[1:] or PLANTED:
        c = PLANTED[name]
        c.defect = name
        ok, n, trace = check(c)
        print(f"{'found' if ok is False else 'NOT FOUND'}: {name} ({n} states, {len(trace)} steps)", flush=True)
        bad += ok is not False
        if args:
            print("\n".join("    " + line for line in trace))
    for name, c in [] if args else DESIGN:
        ok, n, trace = check(c)
        print(f"{WORDS[ok]}: {name} ({n} states)", flush=True)
        print("".join(f"    {line}\n" for line in trace), end="")
        bad += ok is not True
    print("all hold, all planted defects found" if bad == 0 else f"{bad} failed")
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
