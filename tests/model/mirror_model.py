#!/usr/bin/env python3
"""An exhaustive model of one key in a mirrored pool: puts, deletes, gets, the mirror, and the loss of either machine.

    mirror_model.py            a selection of configurations, and every planted defect
    mirror_model.py --full     every configuration, and every planted defect (some minutes)
    mirror_model.py --trace D  a shortest run that breaks the planted defect D
    mirror_model.py --list     the names of the configurations and of the defects

The exit code is 0 only if every configuration holds and every planted defect is found.

docs/mirror.md describes the design. Clients and the shard use the primary's memory. The shard copies all that it flushes
to the end of a stream, as with a journal, and journal_model.py has its steps. Here the stream goes to the mirror. The
mirror stores the ops of the stream into its own pool, in order, with a fence after each. The stream is held up to
there.

The primary's machine may be lost at any moment. Then the operator promotes the mirror, if it is in sync. It first
stores what it has received, which is any part of the rest of the stream. Then it recovers, and serves alone. The
mirror's power may fail at that moment, too. So of the op that it was storing it has any part.

The primary's pool is NVM, too. The shard fences it before it sends a piece of the stream. So after a power cut the
primary has all that the mirror may have, and any beginning of the rest ("sends-unfenced").

A mirror that is new, or that has missed a part of the stream, makes a copy. It notes the place at which the stream
stands. Then it reads the primary's memory piece by piece, at any moments: the entry, and each version. It stores a
piece before it stores the ops that have come since it asked for the piece. When it has all pieces, it asks to join. From
then on the primary answers only what the mirror holds. The mirror is in sync once it has stored all up to the place at
which it joined. Before that nobody may promote it.

While no mirror is in sync, the primary answers nothing that depends on the mirror ("stop"), or it goes on alone
("alone"). A mirror that may have missed an answer so is not in sync. The model lets it know that in the same step. So a
primary must wait, before it goes on alone, for longer than a mirror takes to notice that it hears nothing.

The model has one shard and one mirror. joining_model.py has several, and which of them counts.

A process that is killed on the primary's machine leaves the stream in memory. The next process goes on with it, and so
does the mirror. After a reboot the stream is gone, and the mirror needs a copy. In either case the primary recovers, and
serves nothing before the mirror holds what the recovery flushed.

The mirror's process, too, may start again. It knows a place up to which it has stored the stream, and may have stored
some more. So it stores some ops again, and meanwhile goes back. It joins as after a copy.
"""
import sys
from collections import namedtuple

import erda_model as erda
import journal_model as journal
from _explore import explore
from _program import main
from erda_model import EMPTY, Monitor
from journal_model import I, L, P, R, end, puts

# The fields of journal_model's State: `held` is what the mirror holds, as the primary knows it. `file` is the primary's
# NVM where the stream begins. `base` is 0, and `ends`, `hole`, `cuts` and `stale` have no meaning here.
# applied: the mirror has stored the stream up to this place.
# mirror: the entry and the log in the mirror's pool.
# link: "none", "copying", "joining" or "synced".
# whole: the mirror is in sync, and may be promoted.
# left: the pieces that the copy still has to read: "word", and addresses.
# piece: a piece that was read and is not stored yet: (which, bytes), or None.
# joined: the place at which the mirror joined.
# alone: the primary answers without a mirror.
# promoted: the mirror serves in place of the primary.
# lost, reboots, restarts: how often that happened.
State = namedtuple("State", journal.State._fields + ("mirror", "link", "whole", "left", "piece", "joined", "alone",
                                                     "promoted", "lost", "reboots", "restarts"))


class Config(journal.Config):
    def __init__(self, puts, gets, losses=0, reboots=0, restarts=0, copies=False, goes_alone=False, begins="synced",
                 **more):
        # losses: how often the link may be lost. reboots: of the primary's machine. restarts: of the mirror's process.
        # copies: the mirror makes a copy when it has missed a part. goes_alone: without a mirror, the primary goes on.
        # begins: the first link.
        super().__init__(puts, gets, **more)
        self.losses, self.reboots, self.restarts = losses, reboots, restarts
        self.copies, self.goes_alone, self.begins = copies, goes_alone, begins


def initial(c):
    s = journal.initial(c)
    synced = c.begins == "synced"
    return State(*s, (EMPTY, (None,)), c.begins, synced, (), None, 0, c.goes_alone and not synced, False,
                 0, 0, 0)


# --- The mirror

def store(image, where, what):
    """Returns the mirror's image after one op."""
    return journal.apply(image, ((where, what),))


def mirror_steps(c, s):
    if s.link == "none" and c.copies:
        yield "the mirror begins a copy", begin_copy(c, s), ()
    if s.link in ("copying", "joining", "synced") and s.applied < end(s):
        if s.piece is None or c.defect == "stores-stale-piece":
            t = s._replace(mirror=store(s.mirror, *s.ops[s.applied - s.base]), applied=s.applied + 1)
            yield f"the mirror stores op {s.applied}", known(t), ()
    if s.link == "copying":
        yield from copy_steps(c, s)
    if s.link == "joining" and s.applied >= s.joined:
        yield "the mirror is in sync", known(s._replace(link="synced", whole=True)), ()
    if s.link in ("synced", "joining") and s.lost < c.losses:
        yield "the link is lost, the primary goes on alone", go_alone(c, s), ()
    if s.link in ("synced", "joining") and s.restarts < c.restarts:
        for place in range(max(0, s.applied - 3), s.applied + 1):
            t = s._replace(link="joining", joined=end(s), applied=place, restarts=s.restarts + 1)
            t = t._replace(whole=c.defect == "promotes-while-it-goes-back" and s.whole)
            yield f"the mirror starts again at {place}", t, ()


def known(s):
    """The primary hears what the mirror has stored."""
    return s._replace(held=max(s.held, s.applied)) if s.link in ("joining", "synced") else s


def begin_copy(c, s):
    pieces = ("word",) + tuple(range(len(s.log)))
    t = s._replace(link="copying", whole=c.defect == "promotes-while-copying" and s.whole, left=pieces)
    # The stream begins here. The memory that will be read has all of it before this place.
    return t if c.defect == "stream-after-copy" else t._replace(applied=end(s))


def copy_steps(c, s):
    if s.piece is None and s.left:
        which, left = s.left[0], s.left[1:]
        yield f"the mirror reads {which}", s._replace(piece=(which, s.word if which == "word" else s.log[which]), left=left), ()
    if s.piece is not None:
        yield f"the mirror stores {s.piece[0]}", s._replace(mirror=store(s.mirror, *s.piece), piece=None), ()
    if s.piece is None and not s.left:
        t = s
        if c.defect == "stream-after-copy":
            t = t._replace(applied=end(s))
        at_once = c.defect == "joins-before-whole"
        t = t._replace(link="synced" if at_once else "joining", joined=end(s), alone=False, whole=at_once)
        # Answers that were given without a mirror count.
        held = t.held if c.goes_alone or at_once else t.applied
        yield "the mirror joins", t._replace(held=held), ()


def go_alone(c, s):
    return s._replace(link="none", alone=True, whole=c.defect == "promotes-out-of-sync" and s.whole, lost=s.lost + 1)


# --- The loss of a machine

def promotions(c, s):
    """The primary's machine is lost, and the operator promotes the mirror, whose power may have failed."""
    rest = s.ops[s.applied - s.base:] if s.link != "none" else ()
    for n in range(len(rest) + 1):
        chosen = [rest[:n]]
        if c.defect == "applies-unfenced":
            chosen += [rest[m:n] for m in range(1, n)]
        for ops in chosen:
            word, log = journal.apply(s.mirror, ops)
            t = s._replace(link="none", whole=False, left=(), piece=None, alone=True, promoted=True, base=0)
            t = journal.restart(c, t, word, log, (), held=0, applied=0, file=(word, log))
            yield f"the primary is lost, the mirror has {len(ops)} more, and is promoted", t, (("cut",),)


def kill(c, s):
    """The primary's process ends, and the next one goes on with its pool and its stream."""
    ops = s.ops
    if c.defect == "kill-loses-stream":
        ops = ops[:s.applied]
    return journal.restart(c, s, s.word, s.log, ops, kills=s.kills + 1)


def reboots(c, s):
    """The primary's machine starts again on its pool, which is NVM. The stream is gone."""
    fenced = s.applied if c.defect != "sends-unfenced" else max(0, s.applied - 1)
    for n in range(fenced, end(s) + 1):
        word, log = journal.apply(s.file, s.ops[:n])
        t = s._replace(held=0, applied=0, link="none", left=(), piece=None, joined=0, reboots=s.reboots + 1)
        if c.goes_alone:
            t = t._replace(alone=True, whole=False)
        t = journal.restart(c, t, word, log, (), file=(word, log))
        yield f"the primary's machine starts again, its NVM has {n} of the stream", t, (("cut",),)


# --- Every step that can come next

def may_serve(c, s):
    if c.defect == "serves-before-joined" and not s.alone:
        return True
    return s.held == end(s) and (s.alone or s.link == "synced")


def steps(c, s):
    """Yields (label, next state, events), as erda_model.steps."""
    if s.alone and s.held < end(s):
        yield "held, without a mirror", s._replace(held=end(s)), ()
        return
    if s.down and may_serve(c, s):
        yield "serves", s._replace(down=False), ()
    yield from journal.shard_steps(c, s)
    yield from mirror_steps(c, s)
    if s.whole and not s.promoted:
        yield from promotions(c, s)
    if s.kills < c.kills:
        yield "the process starts again", kill(c, s), (("crash",),)
    if s.reboots < c.reboots and not s.promoted:
        yield from reboots(c, s)


# --- The search

def check(c, limit=20_000_000):
    return explore(initial(c), lambda s: steps(c, s), Monitor(c), limit)


CONFIGURATIONS = [
    ("two inline puts, the primary is lost", Config(puts(I, P, P), 2), True),
    ("inline placed and persisted puts, the primary is lost", Config(puts(I, L, P), 2), True),
    ("two reserved puts, the primary is lost", Config(puts(R, P, P), 1), True),
    ("reserved and inline put, the primary is lost", Config(puts(R, P) + puts(I, P), 2), True),
    ("reserved and inline put, a client dies", Config(puts(R, P) + puts(I, P), 1, deaths=1), False),
    ("inline put, delete", Config(puts(I, P), 2, dels=1, others=True), True),
    ("two inline puts, delete", Config(puts(I, P, P), 1, dels=1), False),
    ("put if equal", Config(puts(I, P) + puts(R, P), 1, wants={("put", 1): 0}), True),
    ("inline put, the cleaner moves", Config(puts(I, P), 2, moves=1), True),
    ("inline puts, the cleaner frees", Config(puts(I, P, P), 1, frees=True), True),
    ("the first copy, inline puts", Config(puts(I, P, P), 1, copies=True, begins="none"), True),
    ("the first copy, reserved and inline put", Config(puts(R, P) + puts(I, P), 1, copies=True, begins="none"), False),
    ("the first copy beside a primary that serves",
     Config(puts(I, P, P), 1, copies=True, begins="none", goes_alone=True), True),
    ("the first copy beside a primary that serves, delete",
     Config(puts(I, P), 1, dels=1, copies=True, begins="none", goes_alone=True), True),
    ("the first copy beside a primary that serves, reserved put, the cleaner moves",
     Config(puts(R, P), 1, copies=True, begins="none", goes_alone=True, moves=1), True),
    ("the link is lost, the primary goes on alone", Config(puts(I, P, P), 1, losses=1, goes_alone=True), True),
    ("the link is lost, the primary goes on alone, another copy",
     Config(puts(I, P, P), 1, losses=1, goes_alone=True, copies=True), False),
    ("the process starts again, inline puts", Config(puts(I, P, P), 1, kills=1), True),
    ("the process starts again, inline put, delete", Config(puts(I, P), 1, dels=1, kills=1), True),
    ("the process starts again, reserved put, the cleaner moves", Config(puts(R, P), 2, kills=1, moves=1), True),
    ("the primary's machine starts again, another copy, inline puts",
     Config(puts(I, P, P), 1, reboots=1, copies=True), True),
    ("the primary's machine starts again, another copy, reserved put",
     Config(puts(R, P), 2, reboots=1, copies=True), True),
    ("the primary's machine starts again, another copy, delete",
     Config(puts(I, P), 1, dels=1, reboots=1, copies=True), False),
    ("the mirror starts again, inline puts", Config(puts(I, P, P), 1, restarts=1), True),
    ("the mirror starts again, reserved put, delete", Config(puts(R, P), 1, dels=1, restarts=1), True),
    ("the process starts again beside a copy", Config(puts(I, P), 1, kills=1, copies=True, begins="none",
                                                      goes_alone=True), True),
    ("the mirror starts again, the link is lost, another copy",
     Config(puts(I, P), 1, restarts=1, losses=1, goes_alone=True, copies=True), True),
    ("the primary's machine starts again and goes on alone, another copy",
     Config(puts(I, P), 1, reboots=1, goes_alone=True, copies=True), True),
    ("the process and the machine start again, another copy",
     Config(puts(I, P), 1, kills=1, reboots=1, copies=True), True),
    ("both processes start again", Config(puts(I, P, P), 1, kills=1, restarts=1), False),
]
DESIGN = {name: c for name, c, _ in CONFIGURATIONS}
QUICK = {name for name, _, quick in CONFIGURATIONS if quick}
PLANTED = {
    "settles-before-held": Config(puts(I, P), 2),
    "answers-before-held": Config(puts(I, P), 1),
    "tells-before-held": Config(puts(I, P, P), 1, wants={("put", 1): None}),
    "frees-before-held": Config(puts(I, P), 2, dels=1),
    "skips-client-bytes": Config(puts(R, P), 1),
    "skips-moved-copy": Config(puts(I, P), 1, moves=1),
    "frees-what-is-not-held": Config(puts(I, P, P), 1, frees=True),
    "applies-unfenced": Config(puts(I, P, P), 1),
    "stores-stale-piece": Config(puts(I, P, P), 1, copies=True, begins="none", goes_alone=True),
    "stream-after-copy": Config(puts(I, P, P), 1, copies=True, begins="none", goes_alone=True),
    "joins-before-whole": Config(puts(I, P, P), 1, copies=True, begins="none", goes_alone=True),
    "promotes-while-copying": Config(puts(I, P, P), 1, reboots=1, copies=True),
    "promotes-while-it-goes-back": Config(puts(I, P, P), 1, restarts=1),
    "promotes-out-of-sync": Config(puts(I, P), 1, losses=1, goes_alone=True),
    "serves-before-joined": Config(puts(I, P), 2, reboots=1, copies=True),
    "sends-unfenced": Config(puts(I, P), 1, reboots=1, copies=True),
    "kill-loses-stream": Config(puts(I, P) + puts(R, P), 1, kills=1, moves=1),
    "found-not-flushed": Config(puts(I, P), 2, kills=1),
}


if __name__ == "__main__":
    sys.exit(main(__doc__, check, DESIGN, PLANTED, QUICK))
