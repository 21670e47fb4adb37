#!/usr/bin/env python3
"""An exhaustive model of one key in a pool with a journal: puts, deletes, gets, the disk, power cuts and kills.

    journal_model.py            a selection of configurations, and every planted defect
    journal_model.py --full     every configuration, and every planted defect (some minutes)
    journal_model.py --trace D  a shortest run that breaks the planted defect D
    journal_model.py --list     the names of the configurations and of the defects

The exit code is 0 only if every configuration holds and every planted defect is found.

docs/journal.md describes the design. Clients and the shard use the image, which is memory. The shard copies all that it
flushes to the end of a stream at that moment (State.ops). The disk takes pieces of the stream as records, up to two at
once. A record counts once the disk has confirmed it and all before it: then the stream is held up to its end. The
checkpointer writes the held part to the pool file, syncs the file, and then frees that part of the ring.

A put that is published or committed notes the end of the stream. When the stream is held up to there, the shard settles
the put and answers. An inline put with kPlaced waits for nothing. A delete publishes its tombstone, and frees the entry when the tombstone is held. Until then
requests for the key wait. So does a delete of another key that needs the same slot. An answer that only tells of the
key's state, like a conflict, waits as an ok does.

A power cut takes the image. The restart makes a new one of the pool file and the records in the ring. It stops at the
first record that is missing or torn. Then it recovers as on NVM. A kill of the server takes neither the image nor the
stream. The restart goes on with both, and recovers. After either, the server serves nothing before all of the stream is
held.
"""
import itertools
import sys
from collections import namedtuple

import erda_model as erda
from _explore import explore
from _program import main
from erda_model import EMPTY, NO_GET, PERSISTED, PLACED, SLOT, Del, Get, Monitor, Put, Version, Word

I, R = erda.I, erda.R
P, L = PERSISTED, PLACED

# word, log: the image. A body is 0 or 1: whether the version is whole.
# pend: the actions that wait until the stream is held up to a place: (place, action).
# busy: the steps that the shard is in the middle of.
# ops: the stream from the place `base` on. Each op is ("word", word) or (address, version).
# ends: the ends of the records that the disk is writing, in order.
# held: the stream is on the disk up to this place.
# applied: the pool file may have the stream up to this place. It is synced up to `base`.
# file: the word and the log in the pool file, as of the last sync.
# hole: the place from which on the disk has lost the stream, or None.
# down: the server is starting.
# stale: an end and the ops of a whole record that stands after a missing one, or None.
State = namedtuple("State", "word log pend busy puts dels gets ops base ends held applied file hole down cuts kills "
                            "moves stale known over", defaults=(None, frozenset(), frozenset()))


class Config(erda.Config):
    def __init__(self, puts, gets, dels=0, cuts=0, kills=0, deaths=0, moves=0, fails=False, checkpoints=False, wants={},
                 others=False, frees=False, expires=(), defect=None):
        # checkpoints: the checkpointer runs. fails: a write of the disk may fail. others: other keys are deleted.
        # frees: the cleaner frees what no entry names.
        super().__init__(puts, gets, dels=dels, cuts=cuts, deaths=deaths, moves=moves, wants=wants, expires=expires,
                         defect=defect)
        self.kills, self.fails, self.checkpoints, self.others, self.frees = kills, fails, checkpoints, others, frees


def initial(c):
    file = (EMPTY, (None,))
    return State(*file, (), (), tuple(Put(0, None, True, False) for _ in c.puts),
                 tuple(Del(0, None) for _ in range(c.dels)), (NO_GET,) * c.gets, (), 0, (), 0, 0, file, None, False, 0, 0, 0)


# --- The image and the stream

def end(s):
    return s.base + len(s.ops)


def capture(s, *ops):
    """Copies what the shard flushes to the end of the stream."""
    return s._replace(ops=s.ops + ops)


def write_version(c, s, a, version):
    """Stores a version and flushes it."""
    log = s.log + (None,) * (a + 1 - len(s.log))
    s = s._replace(log=log[:a] + (version,) + log[a + 1:])
    return capture(s, (a, version))


def store_word(s, word, *then):
    """Stores the entry. Readers see it one step before it is flushed."""
    return s._replace(word=word, busy=(("flush",),) + then + s.busy)


def later(s, *action):
    """Adds an action for when all of the stream is held."""
    return s._replace(pend=s.pend + ((end(s), action),))


def apply(file, ops):
    """Returns the pool file after these ops."""
    word, log = file
    for where, what in ops:
        if where == "word":
            word = what
        else:
            log = log + (None,) * (where + 1 - len(log))
            log = log[:where] + (what,) + log[where + 1:]
    return word, log


# --- The shard

def settle_current(c, s):
    """Flushes the newest version if it is whole. It is settled when that is held."""
    a = s.word.new
    if a is None or s.word.settled or not erda.whole(s.log, a) or waits(s, "commit", a):
        return s
    return later(capture(s, (a, s.log[a])), "commit", a, False)


def waits(s, *action):
    return any(p[1][:len(action)] == action for p in s.pend)


def deleting(s):
    """Returns true while a delete of the key is not held."""
    return waits(s, "free")


def may_judge(c, s, op):
    return op not in c.wants or s.word.new is None or erda.whole(s.log, s.word.new)


def present(s):
    """Returns the put whose value is the newest. Requires: the newest version is whole, or the key is absent."""
    return None if s.word.new is None else erda.value_of(s, s.word.new)


def conflicts(c, s, op):
    return op in c.wants and present(s) != c.wants[op]


def answer(c, s, kind, i, result):
    """Answers an operation once all that it may have seen is held."""
    if c.defect == "tells-before-held":
        return answered(s, kind, i, result)
    return later(s, "answer", kind, i, result)


def answered(s, kind, i, result):
    if kind == "put":
        return erda.with_put(s, i, phase=3, result=result, addr=None)
    return erda.with_del(s, i, phase=3, result=result)


def publish(c, s, i):
    path, level = c.puts[i]
    a = len(s.log)
    s = write_version(c, s, a, Version(int(path == I), level, s.word.new, i, erda.next_rank(s.log)))
    s = erda.with_put(s, i, phase=6, addr=a)
    return store_word(s, erda.published(c, s.word, a), ("published", i, a))


def on_published(c, s, i, a):
    path, level = c.puts[i]
    if path == R:
        return erda.with_put(s, i, phase=2)
    if level == PLACED:
        return answered(erda.settled_bit(s), "put", i, None)
    if c.defect == "settles-before-held":
        s = erda.settled_bit(s)
    s = later(s, "commit", a, False)
    if c.defect == "answers-before-held":
        return answered(s, "put", i, None)
    return later(s, "answer", "put", i, None)


def commit(c, s, i, then=True):
    """A client's value has arrived: flushes it, and settles it when that is held."""
    p = s.puts[i]
    s = erda.with_put(s, i, phase=6)
    if s.log[p.addr] is not None:
        if c.defect != "skips-client-bytes":
            s = capture(s, (p.addr, s.log[p.addr]))
        s = later(s, "commit", p.addr, p.superseded)
    return later(s, "answer", "put", i, None)


def held_commit(c, s, a, superseded):
    """Makes a version that is held reachable as settled."""
    w, v = s.word, s.log[a]
    if superseded or v is None:
        return s
    if w.new == a:
        return erda.settled_bit(s)
    if w.new is None or (s.log[w.new] is not None and v.rank > s.log[w.new].rank):
        return store_word(s, Word(a, w.new if w.settled else w.old, False), ("settle later", a))
    if w.old is None or s.log[w.old] is None or v.rank > s.log[w.old].rank:
        return store_word(s, w._replace(old=a))
    return s


def empty(s, a):
    """Frees the place of a version that was moved. The stream says only that the place is empty."""
    log = s.log[:a] + (None,) + s.log[a + 1:]
    return capture(s._replace(log=log), (a, None))


def take_back(c, s, i):
    """Takes back put i, whose writer is fenced, as erda_model does. An older version that stands is settled when it is
    held."""
    p = s.puts[i]
    a, w = p.addr, s.word
    s = erda.with_put(s, i, phase=8, addr=None)
    if s.log[a] is None:
        return s
    if erda.whole(s.log, a):
        return later(capture(s, (a, s.log[a])), "commit", a, p.superseded)
    if p.superseded or w.new != a:
        return s
    b = s.log[a].prev
    while b is not None and b != w.old and s.log[b] is not None:
        if w.old is not None and s.log[b].rank <= s.log[w.old].rank:
            break
        if erda.whole(s.log, b):
            return store_word(capture(s, (b, s.log[b])), Word(b, w.old, False), ("settle later", b))
        if erda.may_arrive(s, b):
            return store_word(s, Word(b, w.old, False))
        b = s.log[b].prev
    # The old version was held before it became the old one.
    return store_word(s, Word(w.old, None, w.old is not None))


def begin_delete(c, s, j):
    s = settle_current(c, s)
    if conflicts(c, s, ("del", j)):
        return answer(c, s, "del", j, "conflict")
    if not erda.visible(c, s):
        return answer(c, s, "del", j, "notfound")
    s = erda.with_del(s, j, phase=6)
    tombstone = Version(1, PERSISTED, s.word.new, None, erda.next_rank(s.log))
    s = write_version(c, s, SLOT, tombstone)
    return store_word(s, erda.published(c, s.word, SLOT), ("deleted", j))


def on_deleted(c, s, j):
    s = later(erda.supersede(s), "free", j)
    return free(c, s, j) if c.defect == "frees-before-held" else s


def free(c, s, j):
    s = answered(s, "del", j, "ok")
    return store_word(s, EMPTY) if s.word.new == SLOT else s


def go_on(c, s):
    """Takes the next step that the shard is in the middle of. Returns (label, state)."""
    step, s = s.busy[0], s._replace(busy=s.busy[1:])
    if step[0] == "flush":
        return "entry flushed", capture(s, ("word", s.word))
    if step[0] == "published":
        return f"put{step[1]} published", on_published(c, s, *step[1:])
    if step[0] == "settle later":
        return f"{step[1]} will be settled", later(s, "commit", step[1], False)
    if step[0] == "emptied":
        return f"{step[1]} is free", empty(s, step[1])
    return f"del{step[1]} has its tombstone", on_deleted(c, s, step[1])


def on_held(c, s):
    """Does the first thing that waits for the stream. Returns (label, state)."""
    (_, action), s = s.pend[0], s._replace(pend=s.pend[1:])
    what = action[0]
    if what == "commit":
        return f"{action[1]} committed", held_commit(c, s, *action[1:])
    if what == "free":
        return f"del{action[1]} frees the entry", s if c.defect == "frees-before-held" else free(c, s, action[1])
    return f"{action[1]}{action[2]} will return {action[3]}", answered(s, *action[1:])


# --- Power cuts and kills

def restart(c, s, word, log, ops, **more):
    """Returns the state of a server that starts with this image and stream. It recovers, and flushes what it found."""
    dels = tuple(Del(9, None) if d.phase in (1, 3, 6) else d for d in s.dels)
    gets = tuple(Get(5, None, None) if g.phase in (1, 2, 3, 6, 7) else g for g in s.gets)
    puts = tuple(Put(9 if p.phase in (1, 2, 3, 6, 8) else p.phase, None, p.alive, False) for p in s.puts)
    log += (None,) * (1 + max(a or 0 for a in word[:2]) - len(log))
    after = erda.recovered(c, log, word)
    s = s._replace(word=after, log=log, ops=ops, pend=(), busy=(), puts=puts, dels=dels, gets=gets, down=True, **more)
    if word.settled or c.defect == "found-not-flushed":
        return s
    if after.new is not None:
        s = capture(s, (after.new, log[after.new]))
    return capture(s, ("word", after._replace(settled=False)))


def files(c, s):
    """Yields the pool files that a power cut may leave. The kernel has written each part as of any moment."""
    upto = [apply(s.file, s.ops[:n]) for n in range(s.applied - s.base + 1)]
    if c.defect == "reuses-before-checkpoint" and s.stale is not None:
        upto = [s.stale, *upto]
    words = {f[0] for f in upto}
    size = max(len(f[1]) for f in upto)
    cells = [{f[1][a] if a < len(f[1]) else None for f in upto} for a in range(size)]
    for word in words:
        for log in itertools.product(*cells):
            yield word, log


def power_cuts(c, s):
    last = s.held if s.hole is None else min(s.held, s.hole)
    places = [last] if s.hole is not None else [s.held, *s.ends]
    for file in files(c, s):
        for n, place in enumerate(places):
            kept = s.ops[:place - s.base]
            # A whole record after one that is missing.
            behind = None
            if c.defect == "takes-what-is-stale" and n + 2 < len(places):
                behind = (places[n + 1], s.ops[places[n + 1] - s.base:places[n + 2] - s.base])
            applied = [kept]
            if c.defect == "takes-what-is-stale" and s.stale is not None and place == s.stale[0]:
                applied = [kept + s.stale[1]]
            elif c.defect == "applies-torn-record" and s.ends and place == s.held:
                torn = s.ops[place - s.base:s.ends[0] - s.base]
                applied += [kept + tuple(op for op, there in zip(torn, chosen) if there)
                            for chosen in itertools.product((False, True), repeat=len(torn))]
            for ops in applied:
                word, log = apply(file, ops)
                t = restart(c, s, word, log, ops, ends=(), held=s.base + len(ops), applied=s.base, hole=None,
                            file=file, cuts=s.cuts + 1, stale=behind if behind is not None else s.stale)
                yield f"power cut, held up to {place}, file {file}", t, (("cut",),)


def kill(c, s):
    ops = s.ops
    if c.defect == "kill-loses-stream":
        ops = ops[:s.held - s.base]
    # The open step of the shard ends where it was: its stores are in the image, and not all were flushed.
    return restart(c, s, s.word, s.log, ops, ends=(), kills=s.kills + 1)


# --- Every step that can come next

def steps(c, s):
    """Yields (label, next state, events), as erda_model.steps."""
    if s.down and s.held == end(s):
        yield "serves", s._replace(down=False), ()
    yield from shard_steps(c, s)
    yield from disk_steps(c, s)
    if s.cuts < c.cuts:
        yield from power_cuts(c, s)
    if s.kills < c.kills:
        yield "kill", kill(c, s), (("crash",),)


def shard_steps(c, s):
    """The steps of the shard, its clients and the cleaner."""
    if s.busy and not s.down:
        label, t = go_on(c, s)
        yield label, t, ()
    idle = not s.busy and not s.down
    if idle and s.pend and s.pend[0][0] <= s.held:
        label, t = on_held(c, s)
        yield label, t, ()
    yield from put_steps(c, s, idle)
    for j, d in enumerate(s.dels):
        op = ("del", j)
        if d.phase == 0 and (j == 0 or s.dels[j - 1].phase > 0):
            yield f"del{j} asks", erda.with_del(s, j, phase=1), (("inv", op),)
        elif d.phase == 1 and may_begin(c, s, idle) and may_judge(c, s, op) and not waits(s, "answer", "del", j):
            yield f"del{j} at the shard", begin_delete(c, s, j), ()
        elif d.phase == 3 and not s.down:
            yield f"del{j} returns {d.result}", erda.with_del(s, j, phase=4, result=None), (("ret", op, d.result),)
    if not s.down:
        for i, g in enumerate(s.gets):
            yield from erda.get_steps(c, s, i, g)
    for i in c.expires:
        if i not in s.over and s.puts[i].phase in (2, 3, 4) and s.puts[i].result is None and may_expire(c, s, i):
            yield f"put{i} expires", s._replace(over=s.over | {i}), (("over", i),)
    if c.others and idle and s.log[SLOT] is not None:
        if c.defect == "slot-before-held" or not deleting(s):
            yield "another key's delete uses the slot", write_version(c, s, SLOT, None), ()
    if s.moves < c.moves and idle:
        yield from move_steps(c, s)
    if c.frees and idle:
        for a, v in enumerate(s.log):
            if v is not None and may_free(c, s, a):
                yield f"cleaner frees {a}", empty(s, a), ()


def may_free(c, s, a):
    """Returns true if the cleaner may free the place of a version that the entry does not name."""
    if a == SLOT or a in s.word[:2] or any(p.addr == a and p.phase in (2, 6) and c.puts[i][0] == R
                                           for i, p in enumerate(s.puts)):
        return False
    return not waits(s, "commit", a) or c.defect == "frees-what-is-not-held"


def may_expire(c, s, i):
    """Returns false if a put was published because put i's value is there, and readers still go past it."""
    judged = {j for (kind, j), wanted in c.wants.items() if kind == "put" and wanted == i}
    waits = any(s.log[a] is not None and s.log[a].put in judged for a in unsettled(s))
    return not waits or c.defect == "expires-before-settled"


def unsettled(s):
    """Returns the places of the versions that are published, and whose puts have not taken effect."""
    published = {p.addr for p in s.puts if p.phase in (2, 6) and not p.superseded} - {None}
    return published | {action[1] for _, action in s.pend if action[0] == "commit" and not action[2]}


def may_begin(c, s, idle):
    return idle and (not deleting(s) or c.defect == "passes-a-delete")


def put_steps(c, s, idle):
    for i, (path, level) in enumerate(c.puts):
        p = s.puts[i]
        op = ("put", i)
        if p.phase == 0:
            if not (i and erda.alike(c, i - 1, i) and s.puts[i - 1].phase == 0):
                yield f"put{i} asks", erda.with_put(s, i, phase=1), (("inv", op),)
        elif p.phase == 1 and p.alive and may_begin(c, s, idle):
            t = settle_current(c, s)
            if may_judge(c, t, op) and not waits(s, "answer", "put", i):
                if conflicts(c, t, op):
                    yield f"put{i} has a conflict", answer(c, t, "put", i, "conflict"), ()
                else:
                    yield f"put{i} gets space", publish(c, t, i), ()
        elif p.phase == 3 and not s.down:
            yield f"put{i} returns {p.result}", erda.with_put(s, i, phase=4, result=None), (("ret", op, p.result),)
        elif p.phase == 2:
            if s.log[p.addr] is not None and s.log[p.addr].body == 0:  # None: settled by others, and moved.
                yield f"put{i} value lands", s._replace(log=erda.set_body(s.log, p.addr, 1)), ()
            elif p.alive and level == PLACED:
                yield f"put{i} acknowledged (placed)", erda.with_put(s, i, phase=4), (("ret", op, None),)
            elif p.alive and idle:
                yield f"put{i} commits", commit(c, s, i), ()
            if not p.alive and idle:
                yield f"put{i} fenced, taken back", take_back(c, s, i), ()
        if p.phase in (1, 2) and p.alive and c.deaths and sum(not q.alive for q in s.puts) < c.deaths:
            yield f"put{i} client dies", erda.with_put(s, i, alive=False), ()


def disk_steps(c, s):
    if len(s.ends) < 2:
        begin = s.ends[-1] if s.ends else s.held
        for to in range(begin + 1, end(s) + 1):
            yield f"the disk takes the stream up to {to}", s._replace(ends=s.ends + (to,)), ()
    if s.ends and (s.hole is None or c.defect == "acknowledges-after-failed-sync"):
        yield f"held up to {s.ends[0]}", s._replace(held=s.ends[0], ends=s.ends[1:]), ()
    if c.fails and s.ends and s.hole is None:
        yield "a write of the disk fails", s._replace(hole=s.held), ()
    if not c.checkpoints or s.hole is not None:
        return
    most = end(s) if c.defect == "writes-pool-before-held" else s.held
    if s.applied < most:
        yield f"the file gets the stream up to {most}", s._replace(applied=most), ()
    if s.base < s.applied <= s.held:
        n = s.applied - s.base
        t = s._replace(ops=s.ops[n:], base=s.applied, file=apply(s.file, s.ops[:n]))
        if c.defect == "reuses-before-checkpoint":
            t = t._replace(stale=s.file)
        yield "the file is synced, the ring freed", t, ()


def move_steps(c, s):
    """The cleaner moves a settled version. It has made the copy before, and the shard takes it into the stream."""
    for slot in ("new", "old"):
        a = getattr(s.word, slot)
        if a is None or not erda.whole(s.log, a) or (slot == "new" and not s.word.settled):
            continue
        to = len(s.log)
        t = s._replace(log=s.log + (s.log[a],), moves=s.moves + 1)
        if c.defect != "skips-moved-copy":
            t = capture(t, (to, s.log[a]))
        t = store_word(t, s.word._replace(**{slot: to}), ("emptied", a))
        yield f"cleaner moves {slot} from {a} to {to}", t, ()


# --- The search

def check(c, limit=20_000_000):
    return explore(initial(c), lambda s: steps(c, s), Monitor(c), limit, lambda s: tidy(c, s))


def tidy(c, s):
    return s


def puts(path, *levels):
    return [(path, level) for level in levels]


CONFIGURATIONS = [
    ("two inline puts, power cut", Config(puts(I, P, P), 2, cuts=1), True),
    ("inline placed and persisted puts, power cut", Config(puts(I, L, P), 2, cuts=1), True),
    ("inline placed put between persisted ones, power cut", Config(puts(I, P, L, P), 1, cuts=1), False),
    ("inline placed put between persisted ones, kill, power cut", Config(puts(I, P, L), 1, cuts=1, kills=1), False),
    ("inline placed and persisted put, delete, power cut", Config(puts(I, L, P), 1, dels=1, cuts=1), False),
    ("inline placed puts, cleaner frees, power cut", Config(puts(I, P, L), 1, cuts=1, frees=True), True),
    ("inline placed puts, cleaner moves, checkpoints, power cut",
     Config(puts(I, L, L), 1, cuts=1, moves=1, checkpoints=True), False),
    ("inline placed put, put if equal, power cut",
     Config(puts(I, L, P), 2, cuts=1, wants={("put", 1): 0}), True),
    ("reserved and inline placed put, power cut", Config(puts(R, P) + puts(I, L), 2, cuts=1), True),
    ("reserved and inline placed put, a client dies, power cut",
     Config(puts(R, P) + puts(I, L), 1, cuts=1, deaths=1), False),
    ("three inline puts, power cut", Config(puts(I, P, P, P), 1, cuts=1), False),
    ("two reserved puts, power cut", Config(puts(R, P, P), 1, cuts=1), True),
    ("reserved and inline put, power cut", Config(puts(R, P) + puts(I, P), 2, cuts=1), True),
    ("reserved placed puts, power cut", Config(puts(R, L, L), 1, cuts=1), True),
    ("reserved and inline put, two power cuts", Config(puts(R, P) + puts(I, P), 1, cuts=2), False),
    ("inline put, two power cuts", Config(puts(I, P), 2, cuts=2), True),
    ("two inline puts, kill, power cut", Config(puts(I, P, P), 1, cuts=1, kills=1), True),
    ("reserved and inline put, kill, power cut", Config(puts(R, P) + puts(I, P), 1, cuts=1, kills=1), False),
    ("two reserved puts, a client dies, power cut", Config(puts(R, P, P), 1, cuts=1, deaths=1), False),
    ("reserved and inline put, a client dies, power cut", Config(puts(R, P) + puts(I, P), 1, cuts=1, deaths=1), True),
    ("inline and reserved put, a client dies", Config(puts(I, P) + puts(R, P, P), 1, deaths=1), False),
    ("inline put, delete, power cut", Config(puts(I, P), 2, dels=1, cuts=1, others=True), True),
    ("two inline puts, delete, power cut", Config(puts(I, P, P), 1, dels=1, cuts=1), False),
    ("inline put, two deletes, power cut", Config(puts(I, P), 1, dels=2, cuts=1), True),
    ("inline put, delete, kill, power cut", Config(puts(I, P), 1, dels=1, cuts=1, kills=1, others=True), True),
    ("reserved put, delete, power cut", Config(puts(R, P), 1, dels=1, cuts=1, others=True), True),
    ("reserved put, delete, a client dies, power cut", Config(puts(R, P), 1, dels=1, cuts=1, deaths=1), True),
    ("puts if absent, power cut", Config(puts(I, P, P), 1, cuts=1, wants={("put", 0): None, ("put", 1): None}), True),
    ("put if equal, power cut", Config(puts(I, P) + puts(R, P), 1, cuts=1, wants={("put", 1): 0}), True),
    ("a put expires, put if equal, power cut",
     Config(puts(I, P, P), 1, cuts=1, expires=(0,), wants={("put", 1): 0}), True),
    ("a put expires, reserved put if equal, a client dies",
     Config(puts(I, P) + puts(R, P), 2, deaths=1, expires=(0,), wants={("put", 1): 0}), True),
    ("a put expires, put if absent, kill, power cut",
     Config(puts(I, P, P), 1, cuts=1, kills=1, expires=(0,), wants={("put", 1): None}), True),
    ("a put expires, put if equal, delete",
     Config(puts(I, P, P), 2, dels=1, expires=(0,), wants={("put", 1): 0}), True),
    ("inline puts, checkpoints, power cut", Config(puts(I, P, P), 1, cuts=1, checkpoints=True), False),
    ("inline put, delete, checkpoints, power cut", Config(puts(I, P), 1, dels=1, cuts=1, checkpoints=True), True),
    ("inline put, checkpoints, two power cuts", Config(puts(I, P), 1, cuts=2, checkpoints=True), True),
    ("inline puts, the disk fails, power cut", Config(puts(I, P, P), 1, cuts=1, fails=True), True),
    ("inline put, cleaner moves, power cut", Config(puts(I, P), 2, cuts=1, moves=1), True),
    ("inline puts, cleaner moves, power cut", Config(puts(I, P, P), 1, cuts=1, moves=1), False),
    ("inline puts, cleaner frees, power cut", Config(puts(I, P, P), 1, cuts=1, frees=True), True),
    ("reserved and inline put, cleaner frees, a client dies, power cut",
     Config(puts(I, P) + puts(R, P), 1, cuts=1, deaths=1, frees=True), False),
    ("inline put, cleaner moves, checkpoints, power cut", Config(puts(I, P), 1, cuts=1, moves=1, checkpoints=True), True),
]
DESIGN = {name: c for name, c, _ in CONFIGURATIONS}
QUICK = {name for name, _, quick in CONFIGURATIONS if quick}
PLANTED = {
    "settles-before-held": Config(puts(I, P), 2, cuts=1),
    "answers-before-held": Config(puts(I, P), 1, cuts=1),
    "tells-before-held": Config(puts(I, P, P), 1, cuts=1, wants={("put", 1): None}),
    "expires-before-settled": Config(puts(I, P, P), 1, expires=(0,), wants={("put", 1): 0}),
    "frees-before-held": Config(puts(I, P), 2, dels=1, cuts=1),
    "passes-a-delete": Config(puts(I, P, P), 1, dels=1, cuts=1),
    "slot-before-held": Config(puts(I, P), 2, dels=1, cuts=1, others=True),
    "skips-client-bytes": Config(puts(R, P), 1, cuts=1),
    "skips-moved-copy": Config(puts(I, P), 1, cuts=1, moves=1),
    "frees-what-is-not-held": Config(puts(I, P, P), 1, cuts=1, frees=True),
    "reuses-before-checkpoint": Config(puts(I, P), 1, cuts=1, checkpoints=True),
    "writes-pool-before-held": Config(puts(I, P, P), 1, cuts=1, checkpoints=True),
    "applies-torn-record": Config(puts(I, P, P), 1, dels=1, cuts=1),
    "takes-what-is-stale": Config(puts(I, P, P), 1, dels=1, cuts=2),
    "acknowledges-after-failed-sync": Config(puts(I, P), 1, cuts=1, fails=True),
    "kill-loses-stream": Config(puts(I, P) + puts(R, P), 1, cuts=1, kills=1, moves=1),
    "found-not-flushed": Config(puts(I, P), 2, cuts=1, kills=1),
}


if __name__ == "__main__":
    sys.exit(main(__doc__, check, DESIGN, PLANTED, QUICK))
