#!/usr/bin/env python3
"""An exhaustive model of one key, with puts, deletes, gets, power cuts, deaths, and the moves of the cleaner.

    erda_model.py            a selection of configurations, and every planted defect (about a minute)
    erda_model.py --full     every configuration, and every planted defect (some minutes)
    erda_model.py --trace D  a shortest run that breaks the planted defect D
    erda_model.py --list     the names of the configurations and of the defects

The exit code is 0 only if every configuration holds and every planted defect is found.

The model explores every interleaving of a small set of puts, deletes and gets with power cuts, server crashes, clients'
deaths and the cleaner's moves. It checks each run for linearizability, across restarts, too. A value that was
acknowledged or seen stays, as far as its put asked for that.

The model follows these functions:

    publish, settle, commit, take back, sweep, delete   publish_batch.cc, settling.cc, taking_back.cc and removing.cc in
                                                        src/server/versions/, function by function
    the word and its transitions                        src/format/entry_word.h
    a get's steps, and its decisions                    src/client/get.cc, read_table.h
    the left flag                                       src/log/shard_log.cc: OnEntryStored
    a get that reads the version alone                  src/client/get.cc: OnLocatedRead
    recovery, and a power cut in the middle of it       src/server/recovery/recovery.cc: Decide, RepairEntry

A shard is one thread. While it is inside a put, a commit, a taking back or a delete (State.busy), no other step of the
shard runs. Gets, values that land, deaths, crashes and power cuts come in between. With `fine` readers see every store
of the entry one step before it is persistent. A power cut in between keeps the store or loses it. The shard never waits
for the settled bit: each power cut keeps it or loses it. A server crash loses nothing that was stored, persistent or
not. A power cut after the crash may lose it, if recovery did not make it persistent.

A delete settles the current version if it is whole, and answers not-found if no version is visible. Otherwise it
publishes a tombstone, which is whole, persistent and unsettled. It marks in DRAM that the versions in flight are
superseded, frees the entry, and answers. Every tombstone stands at the same address (SLOT). The next delete, of this
key or of another one, writes over it. A superseded version never changes the entry. So a get that finds a tombstone
looks at the entry again before it goes to an older version. The entry that it read may have named an earlier tombstone,
and have another old version than now (`tombstone-not-confirmed`).

A put or delete may have a condition: the key is absent, or its value is that of a certain put. The shard settles the
current version if it is whole, and then compares. While the newest version is not whole, the shard waits. For that
version may become whole and be acknowledged without the shard, and so come before the judgement
(`condition-not-awaited`).

A put may expire: its value's time is over at any moment after the put was published, and for all at once. The shard's
word `time` reaches the deadline at that moment. It waits while a put is published and not done that needs the value
by its condition. Readers still go past that put to the value. The value itself may arrive later. From then on
the version says to conditions and deletes that the key is absent. A get knows the time only by Reads of that word. If a Read before the
entry's says that a version has expired, it has. If a Read after the version's says that it has not, it has not. If the
later Read says that it has, the get starts again. A get that knows where the version is Reads both in any order. A
delete settles the versions that have arrived before it says not-found. If the new version of an entry is settled and
has expired, the shard frees the entry and marks the versions in flight. It writes no tombstone for that.

The model leaves out other keys, torn headers and damage by hardware. It leaves out the index: a get reads an entry as a
whole.

Flush methods belong to the writer, and the object's header says whether the writer flushes the version by a Read. Every
reader judges a version by its header, and not by the method of the reader's connection. It returns a version that Reads
flush as soon as it is whole. For the version may be acknowledged, and everybody who reads it finds it past the caches.
Every other unsettled version is not acknowledged yet. That includes an inline put's value and a tombstone, which the
server itself wrote. Puts with path F are by clients with read-after-write, and those with path R by clients with server
flush. The defects "raw-trusts-server", "passes-what-is-flushed" and "trusts-what-is-not-flushed" show the faults of
simpler rules.

With `warm`, a get may begin at a version, as if its client knew of it, and read nothing but that version. The version
was the settled new one at some time since the server's last start, or was acknowledged since then. It counts if it does
not say that its entry has left it. A power cut loses all such flags, and all that clients know.

In the `lazy` configurations the cleaner frees a version later than it moves it. So the chain is compared by version
numbers. The defect "chain-by-address" shows why.
"""
import sys
from collections import namedtuple

from _explore import explore
from _program import main

# body: 0 not all there; 1 whole in memory; 2 whole and persistent.
# prev: the address of the newest version when this one was published.
# put: the put of this version, or None for a tombstone.
# rank: the version number.
# left: the entry has named this version as new, and names another one now.
# The log has versions by address. None stands for a place that was used again.
Version = namedtuple("Version", "body level prev put rank left", defaults=(False,))
# new: the address of the new version, or None.
# old: the address of the old version, or None.
Word = namedtuple("Word", "new old settled")
# phase: 0 not begun; 1 asked; 2 published and told; 3 done at the shard; 4 acknowledged; 6 being published.
# In phase 8 the client is dead and fenced; in phase 9 the result is unknown for ever.
# superseded: a delete came after the put.
# result: "conflict" if the condition did not hold.
Put = namedtuple("Put", "phase addr alive superseded result", defaults=(None,))
# phase: 0 not begun; 1 asked; 3 done at the shard; 4 acknowledged; 6 under way; 9 unknown for ever.
# result: "ok", "notfound", or "conflict" if the condition did not hold.
Del = namedtuple("Del", "phase result")
# phase: 0 not begun; 1 begun; 2 has an address to read; 3 found no whole version there; 4 done; 5 lost in a crash.
# In phase 6 the get has the version that counts, and Reads the time.
# In phase 7 it has the time, and Reads a version that it knew of.
# snap: the entry's word as the get read it.
# at: the address to read; in phase 6 the put of the version that counts.
# over: the puts that had expired when the get Read the time, before the entry or the known version.
Get = namedtuple("Get", "phase snap at over", defaults=(frozenset(),))
# durable: the word on the medium, if it is not yet the visible one.
# busy: the steps that the shard still has to take, in order.
# known: the versions that clients may know of as settled new ones, without those that say that they were left.
# over: the puts whose values have expired.
State = namedtuple("State", "log word durable puts dels gets busy cuts moves sweeps known over",
                   defaults=(frozenset(), frozenset()))

PLACED, PERSISTED = "placed", "persisted"
# R: a reserved put, flushed as its configuration says.
# W: published settled in one step.
# F: a reserved put, flushed by read-after-write in any configuration.
# D: the client places the value where no entry leads, and asks after that.
# The shard then finds the value of D whole, persists and publishes it.
R, W, I, F, D = "reserve", "whole", "inline", "reserve, read-after-write", "delegated"
NONE, SERVER, RAW = "none", "server", "read-after-write"  # Flush methods.
EMPTY = Word(None, None, False)
SLOT = 0  # The address of tombstones.
NO_GET, GET_DONE = Get(0, None, None), Get(4, None, None)


class Config:
    def __init__(self, puts, gets, dels=0, flush=SERVER, cuts=0, deaths=0, moves=0, crash=False, sweeps=0, fine=False,
                 lazy=False, warm=False, wants={}, expires=(), defect=None):
        # puts: a list of (path, level).
        # expires: the puts with a time to live.
        # wants: conditions. {("put", 1): 0} needs put 0's value; None needs no value.
        self.puts, self.gets, self.dels, self.flush = puts, gets, dels, flush
        self.cuts, self.deaths, self.moves, self.crash = cuts, deaths, moves, crash
        self.sweeps, self.fine, self.lazy, self.warm, self.defect = sweeps, fine, lazy, warm, defect
        self.expires, self.wants = expires, wants


def initial(c):
    return State((None,), EMPTY, None, tuple(Put(0, None, True, False) for _ in c.puts),
                 tuple(Del(0, None) for _ in range(c.dels)), (NO_GET,) * c.gets, (), 0, 0, 0)


def set_body(log, a, body):
    return log[:a] + (log[a]._replace(body=body),) + log[a + 1:]


def whole(log, a):
    return a is not None and log[a] is not None and log[a].body > 0


def next_rank(log):
    return max((v.rank for v in log if v is not None), default=0) + 1


def with_put(s, i, **kw):
    return s._replace(puts=s.puts[:i] + (s.puts[i]._replace(**kw),) + s.puts[i + 1:])


def with_del(s, i, **kw):
    return s._replace(dels=s.dels[:i] + (s.dels[i]._replace(**kw),) + s.dels[i + 1:])


# --- The shard. Each function is one visible step. It puts the steps that must follow at the front of busy.

def leave(s, a):
    """Makes the version say that its entry has left it."""
    return s._replace(log=s.log[:a] + (s.log[a]._replace(left=True),) + s.log[a + 1:])


def store(c, s, word, then=()):
    """Stores `word` for readers, after the version that the entry named as new says that it was left. Then the entry
    becomes persistent. Then come the steps `then`."""
    a = s.word.new
    if c.warm and a != word.new and a is not None and s.log[a] is not None and c.defect != "left-not-set":
        if c.defect == "left-after-entry":
            then = (("leave", a),) + then
        else:
            s = leave(s, a)
    if c.fine and word._replace(settled=False) != s.word._replace(settled=False):
        return s._replace(word=word, durable=s.word, busy=("persist",) + then + s.busy)
    return s._replace(word=word, busy=then + s.busy)


def settled_bit(s):
    return s._replace(word=s.word._replace(settled=True))


def settle_current(c, s):
    w = s.word
    if w.new is None or w.settled or not whole(s.log, w.new):
        return s
    if c.defect == "bit-before-flush":
        return settled_bit(s)
    return settled_bit(s._replace(log=set_body(s.log, w.new, 2)))


def published(c, word, a):
    if word.new is None:
        return Word(a, None, False)
    if word.settled or c.defect == "always-flip":
        return Word(a, word.new, False)
    return Word(a, word.old, False)


def publish(c, s, i):
    path, level = c.puts[i]
    a = len(s.log)
    body = 0 if path in (R, F) else 2
    if path == D and c.defect == "delegated-not-flushed":
        body = 1
    if path == D and c.defect == "delegated-not-looked-at":  # Its value never came.
        body = 0
    s = s._replace(log=s.log + (Version(body, level, s.word.new, i, next_rank(s.log)),))
    s = with_put(s, i, phase=6, addr=a)
    word = published(c, s.word, a)
    if path == W:
        return store(c, s, word._replace(settled=True), (("done", i),))
    if path in (I, D):
        if c.defect == "inline-not-settled":
            return store(c, s, word, (("done", i),))
        return store(c, s, word, (("bit", i), ("done", i)))
    return store(c, s, word, (("told", i),))


def flush_of(c, i):
    """Returns the flush method of put i's client."""
    return RAW if c.puts[i][0] == F else c.flush


def flushed_by_read(c, v):
    """Returns true if the object's header says that Reads make its value persistent."""
    return v.put is not None and c.puts[v.put][0] in (R, F) and flush_of(c, v.put) == RAW


def settled_before(c, s, a):
    """Returns true if the shard has settled the reservation at a, so that only its commit is missing. The version may
    have moved since."""
    return s.log[a] is None or (s.log[a].body == 2 and not flushed_by_read(c, s.log[a]))


def commit(c, s, a, superseded):
    """Makes the whole version at a persistent, and reachable as settled."""
    if settled_before(c, s, a):
        return s
    if c.defect != "bit-before-flush":
        s = s._replace(log=set_body(s.log, a, 2))
    w = s.word
    if superseded and c.defect != "commit-forgets-superseded":
        return s
    if w.new == a:
        return settled_bit(s)
    if w.new is None or s.log[a].rank > s.log[w.new].rank:
        return store(c, s, Word(a, w.new if w.settled else w.old, False), (("bit", None),))
    if w.old is None or s.log[a].rank > s.log[w.old].rank:
        if c.defect != "late-commit-lost":
            return store(c, s, w._replace(old=a))
    return s


def may_arrive(s, a):
    return any(p.addr == a and p.phase == 2 for p in s.puts)


def take_back(c, s, i):
    """Takes back put i, whose writer is fenced. If its version is whole, it stands. Otherwise the entry goes back to
    the newest version that is whole or may still arrive."""
    p = s.puts[i]
    a = p.addr
    s = with_put(s, i, phase=8, addr=None)
    if settled_before(c, s, a) or whole(s.log, a):
        return commit(c, s, a, p.superseded)
    if p.superseded:
        return s
    w = s.word
    if w.new != a:
        return s
    b = s.log[a].prev
    while b is not None and b != w.old and s.log[b] is not None:
        if c.defect != "chain-by-address" and w.old is not None and s.log[b].rank <= s.log[w.old].rank:
            break
        if whole(s.log, b):
            s = s._replace(log=set_body(s.log, b, 2))
            return store(c, s, Word(b, w.old, False), (("bit", None),))
        if may_arrive(s, b) and c.defect != "take-back-too-far":
            return store(c, s, Word(b, w.old, False))
        b = s.log[b].prev
    return store(c, s, Word(w.old, None, w.old is not None))


def value_of(s, a):
    """Returns the put whose value the version at a gives to the key, or None if the key is absent by it."""
    return None if s.log[a] is None or s.log[a].put in s.over else s.log[a].put


def visible(c, s):
    w = s.word
    if w.settled or w.old is not None:
        a = w.new if w.settled else w.old
        return s.log[a] is None or s.log[a].put not in s.over
    b = w.new
    while b is not None and s.log[b] is not None:
        if s.log[b].body > 0:
            return True
        if c.defect == "delete-looks-at-newest":
            return False
        b = s.log[b].prev
    return False


def decided(s):
    """Returns true if the newest version is whole, so that nothing can come before the judgement. Requires:
    settle_current."""
    return s.word.new is None or s.word.settled


def present(s):
    """Returns the put whose value a get would return. Requires: decided."""
    a = s.word.new if s.word.settled else s.word.old
    return None if a is None else value_of(s, a)


def conflicts(c, s, op):
    return op in c.wants and present(s) != c.wants[op]


def may_judge(c, s, op):
    """Returns true if the shard can tell whether the operation's condition holds. Otherwise it waits."""
    return op not in c.wants or decided(s) or c.defect == "condition-not-awaited"


def begin_delete(c, s, j):
    if c.defect != "delete-no-settle":
        s = settle_current(c, s)
    if conflicts(c, s, ("del", j)):
        return with_del(s, j, phase=3, result="conflict")
    if not visible(c, s):
        return with_del(s, j, phase=3, result="notfound")
    s = with_del(s, j, phase=6)
    if c.defect == "free-before-tombstone":
        return s._replace(busy=(("supersede", j), ("free", j), ("deleted", j)))
    tombstone = Version(2, PERSISTED, s.word.new, None, next_rank(s.log))
    s = s._replace(log=(tombstone,) + s.log[1:])
    word = published(c, s.word, SLOT)
    if c.defect == "tombstone-drops-old":
        word = word._replace(old=None)
    if c.defect == "tombstone-settled":  # Visible as settled before it is persistent.
        word = word._replace(settled=True)
    return store(c, s, word, (("supersede", j), ("free", j), ("deleted", j)))


def settle_arrived(c, s):
    """Settles one version of the key that has arrived and is not settled."""
    if s.word.new is None or s.word.settled or c.defect == "delete-trusts-what-expired":
        return s
    for p in s.puts:
        if p.phase in (2, 4) and p.addr is not None and s.log[p.addr] is not None and s.log[p.addr].body == 1:
            return commit(c, s, p.addr, p.superseded)
    return s


def expire(c, s):
    """Frees the entry. Requires: its new version is settled, and has expired."""
    return store(c, s if c.defect == "expiry-forgets-in-flight" else supersede(s), EMPTY)


def supersede(s):
    return s._replace(puts=tuple(p._replace(superseded=True) if p.phase in (2, 4) and p.addr is not None else p
                                 for p in s.puts))


def go_on(c, s):
    """Takes the next step that the shard is in the middle of. Returns (label, state)."""
    step, s = s.busy[0], s._replace(busy=s.busy[1:])
    if step == "persist":
        return "entry persistent", s._replace(durable=None)
    what, i = step
    if what == "told":
        return f"put{i} told its address", with_put(s, i, phase=2)
    if what == "bit":
        return "settled bit", settled_bit(s)
    if what == "leave":
        return f"{i} is left", leave(s, i)
    if what == "done":
        return f"put{i} done", with_put(s, i, phase=3, addr=None)
    if what == "supersede":
        return f"del{i} marks what is in flight", s if c.defect == "delete-forgets-in-flight" else supersede(s)
    if what == "free":
        if c.defect == "free-not-fenced":  # The slot is used again before the entry is persistent.
            return f"del{i} frees the entry", s._replace(word=EMPTY, durable=s.word)
        return f"del{i} frees the entry", store(c, s, EMPTY)
    return f"del{i} done", with_del(s, i, phase=3, result="ok")


def recovered(c, log, w):
    """Returns the entry that recovery makes of w. A settled entry stays as it is. Otherwise its newest whole version
    stands, with the old one at the end of the chain. A tombstone leaves nothing. Nothing is in flight."""
    b = w.new
    if w.settled:
        return w
    if c.defect == "recovery-skips-whole" and not whole(log, b):
        b = w.old
    if c.defect != "trust-newest":
        while b is not None and b != w.old and not whole(log, b):
            b = log[b].prev if log[b] is not None else w.old
            if c.defect != "chain-by-address" and whole(log, b) and w.old is not None and log[w.old] is not None:
                if log[b].rank <= log[w.old].rank:  # It was the old one before it was moved.
                    b = w.old
        if b is None or not whole(log, b):
            b = w.old
    if b is None:
        return EMPTY
    if log[b] is not None and log[b].put is None and c.defect != "recovery-keeps-tombstone":
        return EMPTY
    return Word(b, None if b == w.old else w.old, True)


def recover(c, s, log, w):
    """Returns the state after a restart; see recovered(). All of it is persistent but the settled bit."""
    word = recovered(c, log, w)
    if word.new is not None and log[word.new] is not None and log[word.new].body == 1:
        if c.defect != "recovery-not-flushed":
            log = set_body(log, word.new, 2)
    puts = tuple(Put(9 if p.phase in (1, 2, 3, 6, 8) else p.phase, None, p.alive, False) for p in s.puts)
    dels = tuple(Del(9, None) if d.phase in (1, 3, 6) else d for d in s.dels)
    gets = tuple(Get(5, None, None) if g.phase in (1, 2, 3, 6, 7) else g for g in s.gets)
    known = s.known if c.defect == "known-outlives-server" else frozenset()
    return s._replace(log=log, word=word, durable=None, puts=puts, dels=dels, gets=gets, busy=(), known=known)


def half_recovered(c, log, w):
    """Returns the entries that another power cut may leave in the middle of a recovery, between two stores."""
    word = recovered(c, log, w)
    out = {word, word._replace(settled=False)} if word != EMPTY else {EMPTY}
    if c.defect == "recovery-in-two-stores" and word != w:  # The entry is freed, and then made again.
        out.add(EMPTY)
    return out - {w}


# --- Every step that can come next

def steps(c, s):
    """Yields (label, next state, events).

    The events are ('inv', op), ('ret', op, value), ('over', put), ('cut',) and ('crash',).
    """
    idle = not s.busy
    if s.busy:
        label, t = go_on(c, s)
        yield label, t, ()
    yield from put_steps(c, s, idle)
    for j, d in enumerate(s.dels):
        op = ("del", j)
        if d.phase == 0 and (j == 0 or s.dels[j - 1].phase > 0):  # One after the other.
            yield f"del{j} asks", with_del(s, j, phase=1), (("inv", op),)
        elif d.phase == 1 and idle and c.expires and settle_arrived(c, settle_current(c, s)) != settle_current(c, s):
            yield f"del{j} settles what has arrived", settle_arrived(c, settle_current(c, s)), ()
        elif d.phase == 1 and idle and may_judge(c, settle_current(c, s), op):
            yield f"del{j} at the shard", begin_delete(c, s, j), ()
        elif d.phase == 3:
            yield f"del{j} returns {d.result}", with_del(s, j, phase=4, result=None), (("ret", op, d.result),)
    for i, g in enumerate(s.gets):
        yield from get_steps(c, s, i, g)
    if s.cuts < c.cuts:
        yield from power_cuts(c, s)
    if c.crash and s.cuts < 1:
        t = recover(c, s._replace(cuts=s.cuts + 1), s.log, s.word)
        if c.defect == "recovery-entry-not-flushed" and t.word.new == s.word.new:
            t = t._replace(durable=s.durable)
        yield "server crash", t, (("crash",),)
    if s.log[SLOT] is not None and idle:
        yield "another key's delete uses the slot", s._replace(log=(None,) + s.log[1:]), ()
    if c.moves:
        yield from cleaner_steps(c, s, idle)
    for i in c.expires:
        if i not in s.over and s.puts[i].phase in (2, 3, 4) and s.puts[i].result is None and may_expire(c, s, i):
            yield f"put{i} expires", s._replace(over=s.over | {i}), (("over", i),)
    new = s.log[s.word.new] if s.word.new is not None else None
    gone = new is not None and s.word.settled and new.put in s.over
    if idle and (gone or (c.defect == "expires-newer" and s.over and s.word.new is not None)):
        yield "the expired version goes", expire(c, s), ()


def may_expire(c, s, i):
    """Returns false if a put was published because put i's value is there, and is not done yet."""
    waits = any(c.wants.get(("put", j), NONE) == i and p.phase in (2, 6) and not p.superseded
                for j, p in enumerate(s.puts))
    return not waits or c.defect == "expires-before-settled"


def alike(c, i, j):
    return c.puts[i] == c.puts[j] and not c.wants and not c.expires


def known(s, a):
    """Lets the client know where it has put its value. It learns that earlier here than in the code."""
    return s._replace(known=s.known | {a})


def put_steps(c, s, idle):
    for i, (path, level) in enumerate(c.puts):
        p = s.puts[i]
        op = ("put", i)
        if p.phase == 0:
            if not (i and alike(c, i - 1, i) and s.puts[i - 1].phase == 0):  # Equal puts begin in order.
                yield f"put{i} asks", with_put(s, i, phase=1), (("inv", op),)
        elif p.phase == 1 and p.alive and idle:
            t = settle_current(c, s)
            if c.fine and t.word != s.word:  # Readers can see it settled first.
                yield "current settled", t, ()
            if may_judge(c, t, op):
                if conflicts(c, t, op):
                    yield f"put{i} has a conflict", with_put(t, i, phase=3, result="conflict"), ()
                else:
                    yield f"put{i} published", publish(c, t, i), ()
        elif p.phase == 3:
            yield f"put{i} returns {p.result}", with_put(s, i, phase=4, result=None), (("ret", op, p.result),)
        elif p.phase == 2:
            landed = s.log[p.addr] is None or s.log[p.addr].body > 0  # None: settled by others, and moved.
            if not landed:  # It may land after the client died, too.
                yield f"put{i} value lands", s._replace(log=set_body(s.log, p.addr, 1)), ()
            elif p.alive:
                if level == PLACED or flush_of(c, i) == NONE:
                    yield f"put{i} acknowledged (placed)", known(with_put(s, i, phase=4), p.addr), (("ret", op, None),)
                elif flush_of(c, i) == RAW:
                    t = s if s.log[p.addr] is None else s._replace(log=set_body(s.log, p.addr, 2))
                    yield f"put{i} flushed, acknowledged", known(with_put(t, i, phase=4), p.addr), (("ret", op, None),)
                elif idle:
                    t = with_put(s, i, phase=3, addr=None)
                    if c.defect != "ack-before-flush":
                        t = commit(c, t, p.addr, p.superseded)
                    yield f"put{i} committed", known(t, p.addr), ()
            if not p.alive and idle:
                yield f"put{i} fenced, taken back", take_back(c, s, i), ()
        if p.phase in (1, 2) and p.alive and c.deaths and sum(not q.alive for q in s.puts) < c.deaths:
            yield f"put{i} client dies", with_put(s, i, alive=False), ()
        if s.sweeps < c.sweeps and idle and p.phase in (2, 4) and p.addr is not None and whole(s.log, p.addr):
            t = commit(c, s._replace(sweeps=s.sweeps + 1), p.addr, p.superseded)
            awaits_commit = level == PERSISTED and flush_of(c, i) == SERVER
            yield f"put{i} settled by the sweep", t if awaits_commit or p.phase == 2 else with_put(t, i, addr=None), ()


def power_cuts(c, s):
    words = {s.word, s.word._replace(settled=False)}
    if s.durable is not None:
        words |= {s.durable, s.durable._replace(settled=False)}
    landed = [a for a, v in enumerate(s.log) if v is not None and v.body == 1]
    for kept in subsets(landed):
        log = tuple(v._replace(body=int(a in kept)) if a in landed else v for a, v in enumerate(s.log))
        log = tuple(v and v._replace(left=False) for v in log)
        for w in words:
            label = f"power cut, keeps {sorted(kept)}, entry {tuple(w)}"
            yield label, recover(c, s._replace(cuts=s.cuts + 1), log, w), (("cut",),)
            for half in half_recovered(c, log, w):
                yield (f"{label}, and again in the recovery, entry {tuple(half)}",
                       recover(c, s._replace(cuts=s.cuts + 1), log, half), (("cut",),))


def cleaner_steps(c, s, idle):
    if s.moves < c.moves and idle:  # The cleaner moves a settled version.
        for slot in ("new", "old"):
            a = getattr(s.word, slot)
            if a is None or not whole(s.log, a) or (slot == "new" and not s.word.settled):
                continue
            t = s._replace(log=s.log + (s.log[a]._replace(left=False),), moves=s.moves + 1)
            word = s.word._replace(**{slot: len(s.log)})
            if c.defect == "moves-without-leaving":
                t = t._replace(word=word)
            t = store(c, t, word)
            if not c.lazy:
                t = t._replace(log=t.log[:a] + (None,) + t.log[a + 1:])
            yield f"cleaner moves {slot} from {a} to {len(s.log)}", t, ()
    if c.lazy and idle:
        for a, v in enumerate(s.log):  # The cleaner frees an original later.
            if v is not None and any(o is not None and o.rank == v.rank for o in s.log[a + 1:]):
                yield f"cleaner frees {a}", s._replace(log=s.log[:a] + (None,) + s.log[a + 1:]), ()


def get_steps(c, s, i, g):
    op = ("get", i)

    def get(new):
        return s._replace(gets=s.gets[:i] + (new,) + s.gets[i + 1:])

    if g.phase == 0:
        if i == 0 or s.gets[i - 1].phase in (4, 5):  # Gets of one reader come in order.
            yield f"get{i} begins", get(Get(1, None, None)), (("inv", op),)
    elif g.phase == 1:
        for a in s.known:  # All of these are whole.
            if s.log[a].left:
                continue
            if s.log[a].put not in c.expires:
                yield f"get{i} knows of {a}, returns put{s.log[a].put}", get(GET_DONE), (("ret", op, s.log[a].put),)
                continue
            yield f"get{i} reads {a}, which it knew of", get(Get(6, None, s.log[a].put)), ()
            yield f"get{i} reads the time, and knows of {a}", get(Get(7, None, a, s.over)), ()
        if s.word.new is None:  # The confirmed miss.
            yield f"get{i} finds no entry", get(GET_DONE), (("ret", op, None),)
        else:
            yield f"get{i} reads entry {tuple(s.word)}", get(Get(2, s.word, s.word.new, s.over)), ()
    elif g.phase == 6:
        if g.at not in s.over or c.defect == "trusts-own-clock":  # The reader's clock stands still.
            yield f"get{i} reads the time, returns put{g.at}", get(GET_DONE), (("ret", op, g.at),)
        elif c.defect == "expires-behind-read":
            yield f"get{i} reads the time, returns absent", get(GET_DONE), (("ret", op, None),)
        else:
            yield f"get{i} put{g.at} expired meanwhile, starts again", get(Get(1, None, None)), ()
    elif g.phase == 7:
        v = s.log[g.at]
        if v is None or v.left:
            yield f"get{i} knew of {g.at}, which was left", get(Get(1, None, None)), ()
        else:
            value = None if v.put in g.over else v.put
            yield f"get{i} knew of {g.at}, returns put{value}", get(GET_DONE), (("ret", op, value),)
    elif g.phase == 2:
        yield from read_version(c, s, i, g, op, get)
    elif g.phase == 3:
        if s.word != g.snap and c.defect != "no-restart":
            yield f"get{i} entry changed, starts again", get(Get(1, None, None)), ()
        elif g.at == g.snap.old or (g.at == g.snap.new and g.snap.settled):
            yield f"get{i} finds damage", get(GET_DONE), (("ret", op, "damage"),)
        else:
            yield older(c, s, i, g, op, get, f"get{i} entry unchanged")


def older(c, s, i, g, op, get, label):
    v, old = s.log[g.at], g.snap.old
    if g.at == old:
        a = None
    else:
        a = old if v is None or v.prev is None or c.defect == "no-chain" else v.prev
    if a is None:
        return f"{label}, nothing older", get(GET_DONE), (("ret", op, None),)
    return f"{label}, goes older to {a}", get(Get(2, g.snap, a, g.over)), ()


def read_version(c, s, i, g, op, get):
    a, snap = g.at, g.snap
    v = s.log[a]
    if v is None or v.body == 0:
        yield f"get{i} {a} is not whole", get(Get(3, snap, a, g.over)), ()
        return
    settled = (a == snap.new and snap.settled) or a == snap.old
    to_old = False  # Whether the get goes to the old version, and not farther along the chain.
    if c.lazy and c.defect != "chain-by-address" and not settled and a != snap.new and snap.old is not None:
        o = s.log[snap.old]
        if o is not None and v.rank <= o.rank:  # It was the old one before it was moved.
            yield f"get{i} {a} is not newer than the old one", get(Get(2, snap, snap.old, g.over)), ()
            return
        to_old = o is None  # It may have been the old one, but is nothing older.
    flushed = flushed_by_read(c, v)
    if c.defect == "raw-trusts-server":
        flushed = True
    if c.defect == "passes-what-is-flushed":  # The reader's method counts: server flush.
        flushed = False
    trusted = flushed or c.defect in ("read-unsettled", "trusts-what-is-not-flushed")
    if settled or v.level == PLACED or c.flush == NONE or trusted:
        t = get(GET_DONE)
        if flushed:
            t = t._replace(log=set_body(s.log, a, 2))
        if v.put in s.over and c.defect == "expired-is-older" and snap.old not in (None, a):
            yield older(c, s, i, g, op, get, f"get{i} {a} has expired")
            return
        unknown = v.put not in g.over or c.defect == "trusts-own-clock"
        if v.put in c.expires and unknown and c.defect != "time-read-early":
            yield f"get{i} {a} counts", t._replace(gets=s.gets[:i] + (Get(6, None, v.put),) + s.gets[i + 1:]), ()
            return
        value = None if v.put in g.over else v.put
        yield f"get{i} returns {'absent' if value is None else f'put{value}'}", t, (("ret", op, value),)
    elif a == SLOT and c.defect != "tombstone-not-confirmed":
        # It may be a later tombstone than the one that the entry named.
        yield f"get{i} {a} is a tombstone", get(Get(3, snap, a, g.over)), ()
    elif to_old:
        yield f"get{i} {a} not settled, goes to the old one", get(Get(2, snap, snap.old, g.over)), ()
    else:
        yield older(c, s, i, g, op, get, f"get{i} {a} not settled")


def subsets(items):
    out = [frozenset()]
    for x in items:
        out += [o | {x} for o in out]
    return out


def tidy(c, s):
    """Forgets all that no step can reach any more, so that states differ only where it matters."""
    log = s.log
    known = s.known if c.warm else frozenset()
    if c.warm and s.word.settled and s.word.new not in (None, SLOT):
        known |= {s.word.new}
    for_ever = c.defect == "known-outlives-server"  # Then a version that was left counts, too.
    s = s._replace(known=frozenset(a for a in known if whole(log, a) and (for_ever or not log[a].left)))
    todo = [s.word.new, s.word.old, *s.known]
    if s.durable is not None:
        todo += s.durable[:2]
    for p in s.puts:
        todo.append(p.addr)
    for g in s.gets:
        if g.phase in (2, 3):
            todo += (g.at, g.snap.new, g.snap.old)
        elif g.phase == 7:
            todo.append(g.at)
    seen = set()
    while todo:
        a = todo.pop()
        if a is None or a in seen:
            continue
        seen.add(a)
        if log[a] is not None:
            todo.append(log[a].prev)
    end = max(seen, default=0) + 1
    kept = [log[a] if a in seen else None for a in range(end)]
    ranks = {r: n for n, r in enumerate(sorted({v.rank for v in kept if v is not None}))}
    kept = tuple(v if v is None or v.rank == ranks[v.rank] else v._replace(rank=ranks[v.rank]) for v in kept)
    puts = s.puts
    if not c.sweeps and any(p.phase == 4 and p.addr is not None for p in puts):
        puts = tuple(p._replace(addr=None, superseded=False) if p.phase == 4 else p for p in puts)
        return tidy(c, s._replace(log=kept, puts=puts))
    return s._replace(log=kept, puts=puts)


# --- The specification is a register that can be absent (None). The monitor keeps every (tail, open operations,
# operations that took effect with their results) that the events so far allow. If no such triple is left, no
# linearization exists.
# The tail begins with the value of the newest kPersisted put or delete that took effect. The values of the kPlaced puts
# after that follow. A power cut may fall back along the tail, and a mere crash may not. A delete answers ok if the key
# had a value, and not-found otherwise.

class Monitor:
    def __init__(self, c):
        self.levels = c.puts
        self.wants = c.wants
        self.memo = {}
        self.ids = {}
        self.sets = []
        self.start = self.intern(frozenset({((None,), frozenset(), frozenset())}))

    def intern(self, configs):
        if configs not in self.ids:
            self.ids[configs] = len(self.sets)
            self.sets.append(configs)
        return self.ids[configs]

    def after(self, m, event):
        key = (m, event)
        if key not in self.memo:
            self.memo[key] = self.intern(self.event(self.sets[m], event))
        return self.memo[key]

    def holds(self, m):
        return bool(self.sets[m])

    def event(self, configs, e):
        out = set()
        if e[0] == "inv":
            return frozenset((tail, open_ | {e[1]}, done) for tail, open_, done in configs)
        for tail, open_, done in self.close(configs):
            if e[0] == "ret":
                d = dict(done)
                if e[1] in d and d[e[1]] == e[2]:
                    out.add((tail, open_ - {e[1]}, frozenset((k, v) for k, v in done if k != e[1])))
            elif e[0] == "over":  # It expires in all values that are there, or may come yet.
                gone = tuple(None if v == e[1] else v for v in tail)
                out.add((gone, open_ | {e}, done))
            elif e[0] == "crash":  # Open operations took effect, or did not.
                out.add((tail, frozenset(), frozenset()))
            else:
                for keep in range(1, len(tail) + 1):
                    out.add((tail[:keep][-1:], frozenset(), frozenset()))
        return frozenset(out)

    def close(self, configs):
        seen, todo = set(configs), list(configs)
        while todo:
            tail, open_, done = todo.pop()
            taken = {k for k, _ in done}
            for op in open_ - taken:
                kind, i = op
                if kind == "over":
                    continue
                if op in self.wants and tail[-1] != self.wants[op]:
                    nxt = (tail, open_, done | {(op, "conflict")})
                elif kind == "put":
                    value = None if ("over", i) in open_ else i
                    longer = tail + (value,) if self.levels[i][1] == PLACED else (value,)
                    nxt = (longer, open_, done | {(op, None)})
                elif kind == "get":
                    nxt = (tail, open_, done | {(op, tail[-1])})
                elif tail[-1] is None:
                    nxt = (tail, open_, done | {(op, "notfound")})
                else:
                    nxt = ((None,), open_, done | {(op, "ok")})
                if nxt not in seen:
                    seen.add(nxt)
                    todo.append(nxt)
        return seen


# --- The search

def check(c, limit=20_000_000):
    return explore(initial(c), lambda s: steps(c, s), Monitor(c), limit, lambda s: tidy(c, s))


def puts(path, *levels):
    return [(path, level) for level in levels]


P, L = PERSISTED, PLACED
# Put 1 comes after put 0. Put 2 comes after a delete, and delete 1 after put 2.
ORDERED = {("put", 1): 0, ("put", 2): None, ("del", 1): 2}
# Name, configuration, and whether a run without arguments checks it.
CONFIGURATIONS = [
    # Puts, one key.
    ("three reserved puts, a client dies", Config(puts(R, P, P, P), 1, deaths=1), True),
    ("two reserved puts, power cut", Config(puts(R, P, P), 2, cuts=1), True),
    ("two reserved puts, entry stores one by one, power cut", Config(puts(R, P, P), 2, cuts=1, fine=True), True),
    ("two reserved puts, two power cuts", Config(puts(R, P, P), 2, cuts=2, fine=True), False),
    ("two reserved puts, a client dies, power cut", Config(puts(R, P, P), 2, cuts=1, deaths=1, fine=True), True),
    ("three reserved puts, power cut", Config(puts(R, P, P, P), 2, cuts=1), False),
    ("reserved and inline puts, power cut", Config(puts(R, P) + puts(I, P), 2, cuts=1, fine=True), True),
    ("reserved and two inline puts, power cut", Config(puts(R, P) + puts(I, P, P), 2, cuts=1, fine=True), False),
    ("two reserved and an inline put, power cut", Config(puts(R, P) + puts(I, P) + puts(R, P), 2, cuts=1), False),
    ("reserved and inline puts, a client dies", Config(puts(R, P) + puts(I, P) + puts(R, P), 1, deaths=1), False),
    ("inline placed puts, power cut", Config(puts(I, L, P), 2, cuts=1, fine=True), True),
    ("delegated puts, one by one, power cut", Config(puts(D, P, P), 2, cuts=1, fine=True), True),
    ("reserved and delegated puts, power cut", Config(puts(R, P) + puts(D, P), 2, cuts=1, fine=True), True),
    ("two reserved and a delegated put, power cut", Config(puts(R, P) + puts(D, P) + puts(R, P), 2, cuts=1), False),
    ("reserved and delegated put, delete, a client dies",
     Config(puts(R, P) + puts(D, P), 1, dels=1, deaths=1), True),
    ("read-after-write, power cut", Config(puts(R, P, P), 2, flush=RAW, cuts=1, fine=True), True),
    ("read-after-write, inline too, power cut", Config(puts(R, P) + puts(I, P), 2, flush=RAW, cuts=1, fine=True), True),
    ("read-after-write, three puts, power cut", Config(puts(R, P, P, P), 2, flush=RAW, cuts=1), False),
    ("read-after-write, three puts, a client dies", Config(puts(R, P, P, P), 1, flush=RAW, deaths=1), False),
    ("read-after-write and server flush, power cut", Config(puts(R, P) + puts(F, P), 2, cuts=1, fine=True), True),
    ("read-after-write and server flush, inline too, power cut",
     Config(puts(R, P) + puts(F, P) + puts(I, P), 1, cuts=1), False),
    ("read-after-write and server flush, a client dies", Config(puts(R, P) + puts(F, P, P), 1, deaths=1), True),
    ("read-after-write and server flush, a client dies, power cut",
     Config(puts(R, P) + puts(F, P), 2, cuts=1, deaths=1), True),
    ("read-after-write and server flush, delete, power cut",
     Config(puts(R, P) + puts(F, P), 1, dels=1, cuts=1), True),
    ("sweeps, read-after-write and server flush, power cut",
     Config(puts(R, P) + puts(F, P), 2, cuts=1, sweeps=2), True),
    ("placed puts, server crash", Config(puts(R, L, L), 2, crash=True), True),
    ("server crash, then power cut", Config(puts(R, P, P), 1, crash=True, cuts=2, fine=True), True),
    ("inline put, delete, server crash, then power cut",
     Config(puts(I, P), 2, dels=1, crash=True, cuts=2, fine=True), True),
    ("placed and persisted, server crash, then power cut",
     Config(puts(R, L, P), 2, crash=True, cuts=2, fine=True), False),
    ("three placed puts, server crash", Config(puts(R, L, L, L), 2, crash=True), False),
    ("placed puts, power cut", Config(puts(R, L, L), 2, cuts=1, fine=True), True),
    ("placed and persisted, power cut", Config(puts(R, L, P), 2, cuts=1, fine=True), True),
    ("placed, persisted, placed, power cut", Config(puts(R, L, P, L), 1, cuts=1), False),
    ("three placed puts, clients die", Config(puts(R, L, L, L), 1, deaths=2), False),
    ("placed, persisted, placed, a client dies", Config(puts(R, L, P, L), 1, deaths=1), False),
    ("no flush, persisted and placed, server crash", Config(puts(R, P, L), 2, flush=NONE, crash=True), True),
    ("sweeps, placed and persisted, power cut", Config(puts(R, L, P), 2, cuts=1, sweeps=2), True),
    ("sweeps, placed and persisted, a client dies", Config(puts(R, L, P, L), 1, deaths=1, sweeps=1), False),
    # Deletes.
    ("two reserved puts, delete", Config(puts(R, P, P), 2, dels=1), False),
    ("two reserved puts, delete, power cut", Config(puts(R, P, P), 1, dels=1, cuts=1), True),
    ("two reserved puts, delete, one by one, power cut", Config(puts(R, P, P), 1, dels=1, cuts=1, fine=True), False),
    ("two reserved puts, delete, two gets, power cut", Config(puts(R, P, P), 2, dels=1, cuts=1), False),
    ("two reserved puts, delete, a client dies", Config(puts(R, P, P), 1, dels=1, deaths=1), True),
    ("two reserved puts, delete, a client dies, power cut", Config(puts(R, P, P), 1, dels=1, deaths=1, cuts=1), False),
    ("reserved put, delete, one by one, power cut", Config(puts(R, P), 2, dels=1, cuts=1, deaths=1, fine=True), True),
    ("reserved put, two deletes, power cut", Config(puts(R, P), 2, dels=2, cuts=1, fine=True), True),
    ("two reserved puts, two deletes", Config(puts(R, P, P), 1, dels=2), True),
    ("inline and reserved placed puts, two deletes",
     Config(puts(I, P) + puts(R, L) + puts(I, P), 1, dels=2, wants=ORDERED), True),
    ("two reserved puts, two deletes, power cut", Config(puts(R, P, P), 1, dels=2, cuts=1), False),
    ("placed and persisted, delete, power cut", Config(puts(R, L, P), 1, dels=1, cuts=1, fine=True), False),
    ("placed and persisted, delete, a client dies", Config(puts(R, L, P), 1, dels=1, deaths=1), True),
    ("placed puts, delete, clients die, power cut", Config(puts(R, L, L), 1, dels=1, cuts=1, deaths=1), False),
    ("inline put, delete, one by one, power cut", Config(puts(I, P), 2, dels=1, cuts=1, fine=True), True),
    ("reserved and inline put, delete, power cut", Config(puts(R, P) + puts(I, P), 1, dels=1, cuts=1, fine=True), True),
    ("reserved and inline placed put, delete, power cut", Config(puts(R, L) + puts(I, L), 1, dels=1, cuts=1), False),
    ("read-after-write, delete, power cut", Config(puts(R, P, P), 1, dels=1, flush=RAW, cuts=1, fine=True), False),
    ("read-after-write, inline, delete, power cut",
     Config(puts(R, P) + puts(I, P), 1, dels=1, flush=RAW, cuts=1, fine=True), True),
    ("read-after-write, delete, a client dies", Config(puts(R, P, P), 1, dels=1, flush=RAW, deaths=1), True),
    ("no flush, delete, server crash", Config(puts(R, P), 2, dels=1, flush=NONE, crash=True), True),
    ("no flush, two puts, delete, server crash", Config(puts(R, P, L), 1, dels=1, flush=NONE, crash=True), True),
    ("no flush, two puts, delete, a client dies", Config(puts(R, P, L), 1, dels=1, flush=NONE, deaths=1), True),
    ("sweeps, placed puts, delete", Config(puts(R, L, L), 1, dels=1, sweeps=1), True),
    ("sweeps, placed and persisted, delete, power cut", Config(puts(R, L, P), 1, dels=1, cuts=1, sweeps=1), False),
    ("sweeps, read-after-write, delete", Config(puts(R, P, P), 1, dels=1, flush=RAW, sweeps=1), True),
    ("sweeps, no flush, delete, a client dies",
     Config(puts(R, P, L), 1, dels=1, flush=NONE, sweeps=1, deaths=1), False),
    ("three reserved puts, delete", Config(puts(R, P, P, P), 1, dels=1), False),
    # Conditions.
    ("reserved put, put if absent", Config(puts(R, P, P), 2, wants={("put", 1): None}), True),
    ("puts if absent, power cut",
     Config(puts(R, P, P), 1, cuts=1, wants={("put", 0): None, ("put", 1): None}), True),
    ("puts if absent, inline too, one by one, power cut",
     Config(puts(R, P) + puts(I, P), 2, cuts=1, fine=True, wants={("put", 0): None, ("put", 1): None}), True),
    ("inline put if equal, among others",
     Config(puts(I, P) + puts(R, P) + puts(I, P), 1, wants={("put", 2): 0}), True),
    ("inline put if equal, among others, power cut",
     Config(puts(I, P) + puts(R, P) + puts(I, P), 1, cuts=1, wants={("put", 2): 0}), False),
    ("reserved put if equal, placed puts, a client dies",
     Config(puts(I, L) + puts(R, L, L), 1, deaths=1, wants={("put", 2): 0}), True),
    ("two puts if equal, a client dies",
     Config(puts(I, P) + puts(R, P, P), 1, deaths=1, wants={("put", 1): 0, ("put", 2): 0}), True),
    ("put if equal, read-after-write, power cut",
     Config(puts(I, P) + puts(R, P, P), 1, flush=RAW, cuts=1, wants={("put", 2): 0}), False),
    ("put if equal, read-after-write and server flush",
     Config(puts(I, P) + puts(F, P) + puts(R, P), 1, wants={("put", 2): 0}), True),
    ("put if equal, delete, power cut",
     Config(puts(R, P) + puts(I, P), 1, dels=1, cuts=1, fine=True, wants={("put", 1): 0}), True),
    ("put, put if absent, delete", Config(puts(R, L) + puts(R, P), 1, dels=1, wants={("put", 1): None}), True),
    ("delete if equal, placed puts", Config(puts(R, L, L), 2, dels=1, wants={("del", 0): 0}), True),
    ("delete if equal, power cut",
     Config(puts(R, P, P), 1, dels=1, cuts=1, wants={("del", 0): 0}), True),
    ("delete if equal, put if absent, a client dies",
     Config(puts(R, P, P), 1, dels=1, deaths=1, wants={("del", 0): 0, ("put", 1): None}), True),
    ("put if equal, cleaner moves, known versions",
     Config(puts(R, P) + puts(I, P), 2, moves=2, warm=True, wants={("put", 1): 0}), True),
    ("put if equal, server crash, then power cut",
     Config(puts(R, P) + puts(I, P), 1, crash=True, cuts=2, fine=True, wants={("put", 1): 0}), True),
    # Expiry.
    ("a put expires, another one is under way, a client dies", Config(puts(R, P, P), 1, deaths=1, expires=(0,)), True),
    ("puts expire, power cut", Config(puts(I, P) + puts(R, P), 2, cuts=1, fine=True, expires=(0, 1)), True),
    ("a reserved put expires behind others, sweeps", Config(puts(R, L, L, L), 1, sweeps=1, expires=(1,)), True),
    ("placed and persisted puts expire, power cut", Config(puts(R, L, P), 1, cuts=1, expires=(0, 1)), True),
    ("a put expires, delete, a client dies", Config(puts(R, L, L), 1, dels=1, deaths=1, expires=(0,)), True),
    ("the newer put expires, delete, sweeps", Config(puts(R, L, L), 1, dels=1, sweeps=1, expires=(1,)), True),
    ("puts expire, delete, power cut", Config(puts(I, P) + puts(R, P), 1, dels=1, cuts=1, expires=(0, 1)), True),
    ("a put expires, put if absent", Config(puts(R, L, L), 2, expires=(0,), wants={("put", 1): None}), True),
    ("a put expires, put if absent, power cut",
     Config(puts(I, P) + puts(R, P), 1, cuts=1, fine=True, expires=(0,), wants={("put", 1): None}), True),
    ("a put expires, inline put if equal", Config(puts(I, P, P), 2, expires=(0,), wants={("put", 1): 0}), True),
    ("a put expires, reserved put if equal, delete",
     Config(puts(I, P) + puts(R, P), 1, dels=1, expires=(0,), wants={("put", 1): 0}), True),
    ("a put expires, reserved placed put if equal",
     Config(puts(I, P) + puts(R, L), 2, expires=(0,), wants={("put", 1): 0}), True),
    ("a put expires, put if equal, another put, a client dies",
     Config(puts(I, P) + puts(R, P) + puts(I, P), 1, deaths=1, expires=(0,), wants={("put", 1): 0}), True),
    ("puts expire, put if equal, power cut",
     Config(puts(I, P) + puts(R, P), 1, cuts=1, fine=True, expires=(0, 1), wants={("put", 1): 0}), True),
    ("a put expires, put if equal, read-after-write, power cut",
     Config(puts(I, P) + puts(F, P), 1, cuts=1, expires=(0,), wants={("put", 1): 0}), True),
    ("a put expires, known versions, cleaner moves",
     Config(puts(I, P) + puts(R, P), 2, moves=1, lazy=True, warm=True, expires=(0,)), True),
    ("puts expire, server crash, then power cut",
     Config(puts(I, P) + puts(R, P), 1, crash=True, cuts=2, fine=True, expires=(0, 1)), True),
    ("puts expire, read-after-write and server flush, power cut",
     Config(puts(R, P) + puts(F, P), 1, cuts=1, expires=(0, 1)), True),
    # Clients that know where a version was.
    ("known versions, three reserved puts, a client dies", Config(puts(R, P, P, P), 1, deaths=1, warm=True), True),
    ("known versions, reserved and inline puts, power cut",
     Config(puts(R, P) + puts(I, P), 2, cuts=1, fine=True, warm=True), True),
    ("known versions, inline puts, one by one, power cut",
     Config(puts(I, P, P), 2, cuts=1, fine=True, warm=True), True),
    ("known versions, reserved puts, power cut", Config(puts(R, P, P), 2, cuts=1, fine=True, warm=True), False),
    ("known versions, placed and persisted, sweeps", Config(puts(R, L, P), 2, sweeps=2, warm=True), True),
    ("known versions, delete", Config(puts(R, P) + puts(I, P), 2, dels=1, fine=True, warm=True), True),
    ("known versions, delete, power cut", Config(puts(R, P, P), 1, dels=1, cuts=1, warm=True), False),
    ("known versions, server crash, then power cut", Config(puts(R, P, P), 1, crash=True, cuts=2, warm=True), True),
    ("known versions, cleaner moves", Config(puts(R, P) + puts(I, P), 2, moves=2, warm=True), True),
    ("known versions, cleaner frees later", Config(puts(R, P) + puts(I, P), 2, moves=2, lazy=True, warm=True), True),
    ("known versions, cleaner frees later, power cut",
     Config(puts(I, P, P), 2, moves=1, cuts=1, fine=True, lazy=True, warm=True), False),
    ("known versions, cleaner frees later, delete",
     Config(puts(I, P, P), 1, moves=2, lazy=True, dels=1, warm=True), True),
    ("known versions, read-after-write and server flush",
     Config(puts(R, P) + puts(F, P), 2, cuts=1, warm=True), True),
    # The cleaner.
    ("cleaner moves", Config(puts(R, P, P), 2, moves=2), True),
    ("cleaner moves, a client dies", Config(puts(R, P, P, P), 1, moves=1, deaths=1), False),
    ("cleaner moves, power cut", Config(puts(R, P, P), 1, moves=1, cuts=1), True),
    ("cleaner frees later, power cut", Config(puts(R, P, P), 1, moves=1, cuts=1, fine=True, lazy=True), True),
    ("cleaner moves twice, power cut", Config(puts(R, P, P), 2, moves=2, cuts=1), False),
    ("cleaner moves, delete", Config(puts(R, P, P), 1, moves=1, dels=1), True),
    ("cleaner moves, delete, power cut", Config(puts(R, P, P), 1, moves=1, dels=1, cuts=1), False),
    ("cleaner frees later", Config(puts(R, L, P), 2, moves=1, lazy=True), True),
    ("cleaner frees later, three puts", Config(puts(R, L, P, P), 1, moves=1, lazy=True), True),
    ("cleaner frees later, a client dies", Config(puts(R, P, P, P), 1, moves=1, lazy=True, deaths=1), False),
    ("cleaner frees later, delete", Config(puts(R, L, P), 1, moves=2, lazy=True, deaths=1, dels=1), False),
]
DESIGN = {name: c for name, c, _ in CONFIGURATIONS}
QUICK = {name for name, _, quick in CONFIGURATIONS if quick}
PLANTED = {
    # The paper's unconditional flip, and other faults of puts.
    "always-flip": Config(puts(R, P, P, P), 1, deaths=2),
    "late-commit-lost": Config(puts(R, P, P, P), 1, deaths=1),
    "take-back-too-far": Config(puts(R, L, L, L), 1, deaths=2),
    "trust-newest": Config(puts(R, P, P), 1, cuts=1),
    "ack-before-flush": Config(puts(R, P, P), 1, cuts=1),
    "read-unsettled": Config(puts(R, P, P), 2, cuts=1),
    "no-chain": Config(puts(R, L, L, L), 1, deaths=1),
    "no-restart": Config(puts(R, P, P), 2, moves=2),
    "bit-before-flush": Config(puts(R, P, P), 2, cuts=1),               # Settled before the bytes are flushed.
    "inline-not-settled": Config(puts(I, P), 1),                        # The shard answers without the settled bit.
    "inline-in-one-store": Config(puts(W, P), 2, cuts=1, fine=True),    # One store publishes and settles.
    "delegated-not-flushed": Config(puts(D, P), 2, cuts=1),             # Settled before the value is flushed.
    "delegated-not-looked-at": Config(puts(D, P), 1),                   # Settled whether its value is there or not.
    "raw-trusts-server": Config(puts(I, P), 2, flush=RAW, cuts=1, fine=True),
    "passes-what-is-flushed": Config(puts(F, P), 1),
    "trusts-what-is-not-flushed": Config(puts(R, P) + puts(F, P), 2, cuts=1),
    "chain-by-address": Config(puts(R, L, P, P), 1, moves=1, lazy=True),
    # Conditions.
    "condition-not-awaited": Config(puts(I, L) + puts(R, L) + puts(I, L), 1, wants={("put", 2): 0}),
    # Expiry.
    "expiry-forgets-in-flight": Config(puts(R, L, L), 2, sweeps=2, expires=(1,)),
    "expires-behind-read": Config(puts(I, L, L), 1, expires=(0,)),
    "expires-before-settled": Config(puts(I, P) + puts(R, P), 1, expires=(0,), wants={("put", 1): 0}),
    "trusts-own-clock": Config(puts(I, L), 2, expires=(0,)),
    "time-read-early": Config(puts(I, L) + puts(R, L), 1, dels=1, expires=(1,)),  # Born expired, and returned.
    "expired-is-older": Config(puts(I, L) + puts(R, L), 1, expires=(1,)),
    "expires-newer": Config(puts(I, L, L), 1, expires=(0,)),
    "delete-trusts-what-expired": Config(puts(R, L, L, L), 0, dels=1, expires=(0,)),
    # Clients that know where a version was.
    "left-not-set": Config(puts(I, P, P), 1, warm=True),
    "left-after-entry": Config(puts(I, L, L), 2, fine=True, warm=True),  # Gets see the new entry too early.
    "moves-without-leaving": Config(puts(I, P, P), 1, moves=1, lazy=True, warm=True),
    "known-outlives-server": Config(puts(I, P, P), 1, cuts=1, warm=True),
    # Recovery.
    "recovery-skips-whole": Config(puts(R, L, L), 1, crash=True),       # It goes back to the old one, past a whole one.
    "recovery-not-flushed": Config(puts(R, P, P), 1, crash=True, cuts=2),
    "recovery-entry-not-flushed": Config(puts(I, P), 2, crash=True, cuts=2, fine=True),
    "recovery-in-two-stores": Config(puts(R, P, P), 1, cuts=1),
    # Deletes.
    "delete-forgets-in-flight": Config(puts(R, L, L), 1, dels=1, sweeps=1),      # It leaves out the marks in DRAM.
    "commit-forgets-superseded": Config(puts(R, L, L), 1, dels=1, sweeps=1),
    "free-before-tombstone": Config(puts(R, P), 2, dels=1, cuts=1, fine=True),   # The entry is cleared at once.
    "free-not-fenced": Config(puts(R, P), 2, dels=1, cuts=1, fine=True),         # The free entry is not persistent.
    "tombstone-settled": Config(puts(R, P), 2, dels=1, cuts=1, fine=True),       # One store publishes and settles.
    "tombstone-drops-old": Config(puts(R, P), 2, dels=1, cuts=1, fine=True),
    "delete-looks-at-newest": Config(puts(R, L, L), 1, dels=1),         # Not-found if the newest alone is not whole.
    "tombstone-not-confirmed": Config(puts(I, P) + puts(R, L) + puts(I, P), 1, dels=2, wants=ORDERED),
    "recovery-keeps-tombstone": Config(puts(R, P), 2, dels=1, cuts=1),
}


if __name__ == "__main__":
    sys.exit(main(__doc__, check, DESIGN, PLANTED, QUICK))
