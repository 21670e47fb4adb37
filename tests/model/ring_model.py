#!/usr/bin/env python3
"""An exhaustive model of the shm fabric's ring and its sleepers, under a weak memory model.

    ring_model.py            every configuration, and every planted defect
    ring_model.py --trace D  a shortest run that breaks the planted defect D

The exit code is 0 only if every configuration holds and every planted defect is found.

The model explores every interleaving of a producer that posts and a consumer that polls, parks, sleeps and leaves. It
explores every value that each load may return.

The model covers one channel: `Ring::Push`, `Publish`, `IsEmpty`, `Peek`, `BeginSleep`, `EndSleep`, `FenceSleep`,
`BeginPlacing`, `Leave` and `ConsumerIsGone` (src/fabric/shm/ring.h), and `ShmQueue::Arm`, `ParkSilent` and `Unpark`
(queue.cc). The kernel keeps the socket beside the ring. All threads see a byte in the socket at once, after all that
its sender did before. So a send is also a release, and hearing it is an acquire.

The producer stores the bytes of each message, then the tail. It fences, and then looks at the sleeping flag. If the
flag is set, the producer takes it back, and rings. In the end the producer hangs up, which the consumer hears as well.

The consumer may look into the ring in each turn and take a message, or park, or arm itself and sleep. A first look
acquires nothing. The consumer takes a message only after a second look, which acquires. While it sleeps or has parked
the ring, it hears the socket, and then looks into the ring. Once the socket has ended and the ring is empty, the
consumer tells that the peer is gone.

In separate configurations, a producer places bytes in the consumer's memory, and a consumer leaves.

The memory is that of C++20 without reads of values that are stored later, the promise-free part of the promising
semantics. A location is a list of the stores to it, in their order of modification. Each thread has a view: for each
location the oldest store that the thread may still read. A relaxed load reads any store that is not older. A relaxed
store enters the list anywhere after the view. A store that releases carries its thread's view, and a load that acquires
takes that view over. A sequentially consistent fence exchanges views with all others before it. A read-modify-write
directly follows the store that it read. This allows all that x86 and ARM do with these accesses, and more. The model
takes a sequentially consistent access as a fence and then the access. Compilers make that of it, or something stronger.

The model checks:

    - When nothing more happens, a consumer that sleeps or has parked the ring has taken all messages.
    - A message that the consumer takes has its bytes.
    - When the consumer tells that the peer is gone, it has taken all that the peer sent.
    - A consumer that left sees every Write that was acknowledged.
    - Once the consumer has found that placing ended, nobody places bytes any more.

The model leaves out several rings of a queue, which share no word. It leaves out a full socket, whose reader has a ring
to hear, and peers that break the rules. A change of the code that reads `peer_gone_` after the ring would make no
difference. The thread of the queue alone sets it, when it hears the socket. The defect here asks the socket at that
point.
"""
import sys
from collections import namedtuple

from _explore import explore
from _program import main

# --- The memory.

# A view is a position for each location.
# stores: for each location, a tuple of Store.
# seen: for each thread, its view.
# taken: for each thread, its view with all that relaxed loads found. A later fence that acquires takes it over.
# given: for each thread, the view of its last fence that releases.
# all: the view that sequentially consistent fences have exchanged.
Memory = namedtuple("Memory", "stores seen taken given all")
# glued: no store may come between it and the store before it.
Store = namedtuple("Store", "value view glued")


def new_memory(locations, threads):
    zero = (0,) * locations
    stores = ((Store(0, zero, False),),) * locations
    return Memory(stores, (zero,) * threads, (zero,) * threads, (zero,) * threads, zero)


def join(a, b):
    return tuple(x if x > y else y for x, y in zip(a, b))


def put(t, i, x):
    return t[:i] + (x,) + t[i + 1:]


def load(m, thread, location, acquires):
    """Yields (value, memory, position)."""
    for at in range(m.seen[thread][location], len(m.stores[location])):
        store = m.stores[location][at]
        seen = put(m.seen[thread], location, at)
        taken = join(m.taken[thread], store.view)
        taken = put(taken, location, max(taken[location], at))
        if acquires:
            seen = join(seen, store.view)
        yield store.value, m._replace(seen=put(m.seen, thread, seen), taken=put(m.taken, thread, join(taken, seen))), at


def store(m, thread, location, value, releases, behind=None):
    """Yields memories. For a read-modify-write, `behind` is the position of the store that it read."""
    first = m.seen[thread][location] + 1
    places = range(first, len(m.stores[location]) + 1) if behind is None else [behind + 1]
    for at in places:
        if at < len(m.stores[location]) and m.stores[location][at].glued:
            continue
        n = moved(m, location, at)
        seen = put(n.seen[thread], location, at)
        view = seen if releases else put(n.given[thread], location, at)
        if behind is not None:  # It continues the release sequence that it read.
            view = join(view, n.stores[location][behind].view)
        stores = n.stores[location]
        new = Store(value, view, behind is not None)
        n = n._replace(stores=put(n.stores, location, stores[:at] + (new,) + stores[at:]))
        taken = put(n.taken[thread], location, max(n.taken[thread][location], at))
        yield n._replace(seen=put(n.seen, thread, seen), taken=put(n.taken, thread, taken))


def moved(m, location, at):
    """Makes a place in the list of a location. Positions from that place on move by one."""
    if at == len(m.stores[location]):
        return m

    def view(v):
        return put(v, location, v[location] + 1) if v[location] >= at else v

    stores = tuple(tuple(s._replace(view=view(s.view)) for s in all_of) for all_of in m.stores)
    return Memory(stores, tuple(map(view, m.seen)), tuple(map(view, m.taken)), tuple(map(view, m.given)), view(m.all))


def fence(m, thread, order):
    seen, taken, given, everybody = m.seen[thread], m.taken[thread], m.given[thread], m.all
    if order in ("acquire", "acq_rel", "seq_cst"):
        seen = join(seen, taken)
    if order == "seq_cst":
        seen = everybody = join(seen, everybody)
    if order in ("release", "acq_rel", "seq_cst"):
        given = seen
    return m._replace(seen=put(m.seen, thread, seen), taken=put(m.taken, thread, join(taken, seen)),
                      given=put(m.given, thread, given), all=everybody)


# --- The ring.

PRODUCER, CONSUMER = 0, 1


class Config:
    # messages: the number that the producer posts.
    # turns: how often the consumer begins to sleep or to park, at most.
    # hangs_up: the producer hangs up at its end.
    # writes: the number of Writes. If there are any, the consumer leaves while the producer writes.
    # places: the producer says for each Write that it is placing bytes.
    def __init__(self, messages=1, turns=2, parks=True, sleeps=True, hangs_up=False, writes=0, places=False):
        self.messages, self.turns, self.parks, self.sleeps, self.hangs_up = messages, turns, parks, sleeps, hangs_up
        self.writes, self.places = writes, places
        self.defect = None
        # The locations are tail, sleeping and the bytes of each message; or gone, placing and the bytes of each Write.
        self.locations = 2 + max(messages, writes)


TAIL, SLEEPING, BYTES = 0, 1, 2
GONE, PLACING = 0, 1

# step, message: the next step of the producer, and for which message.
# rung: the views of the senders of the doorbells that the consumer has not heard yet.
# hung: the view of the producer when it hung up, or None.
# mode: the state of the consumer: poll, peek, take, idle, begun, look, awake, asleep, parked or told.
# why: the kind of rest that the consumer began: park or sleep.
# gone: whether the consumer has heard the end of the socket.
# took: the number of messages that the consumer has taken.
Ring = namedtuple("Ring", "memory step message rung hung mode why gone took turns")


def ring_start(c):
    return Ring(new_memory(c.locations, 2), "bytes", 0, (), None, "poll", None, False, 0, 0)


def ring_steps(c, s):
    yield from producer_steps(c, s)
    yield from consumer_steps(c, s)


def producer_steps(c, s):
    m, i = s.memory, s.message
    if s.step == "bytes" and i < c.messages:
        for n in store(m, PRODUCER, BYTES + i, i + 1, False):
            yield f"producer: bytes of {i}", s._replace(memory=n, step="tail"), ()
    elif s.step == "tail":
        for n in store(m, PRODUCER, TAIL, i + 1, c.defect != "tail-not-released"):
            yield f"producer: tail {i + 1}", s._replace(memory=n, step="fence"), ()
    elif s.step == "fence":
        n = m if c.defect == "publish-without-fence" else fence(m, PRODUCER, "seq_cst")
        if c.defect == "publish-fence-acq-rel":
            n = fence(m, PRODUCER, "acq_rel")
        yield "producer: fence", s._replace(memory=n, step="flag"), ()
    elif s.step == "flag":
        for value, n, _ in load(m, PRODUCER, SLEEPING, False):
            t = s._replace(memory=n, step="take" if value else "bytes", message=i if value else i + 1)
            yield f"producer: sees the flag {value}", t, ()
    elif s.step == "take":                                              # An exchange.
        for value, read, at in load(m, PRODUCER, SLEEPING, False):
            for n in store(read, PRODUCER, SLEEPING, 0, False, behind=at):
                t = s._replace(memory=n, step="ring" if value else "bytes", message=i if value else i + 1)
                yield f"producer: takes the flag {value}", t, ()
    elif s.step == "ring":
        yield "producer: rings", s._replace(rung=s.rung + (m.seen[PRODUCER],), step="bytes", message=i + 1), ()
    elif s.step == "bytes" and c.hangs_up and s.hung is None:
        yield "producer: hangs up", s._replace(hung=m.seen[PRODUCER]), ()


def glance(s, then_empty, then_more, acquires=False):
    """The consumer looks at the tail. The functions return the state that follows if the ring is empty, or has a
    message."""
    for tail, m, _ in load(s.memory, CONSUMER, TAIL, acquires):
        if tail <= s.took:
            yield "consumer: finds nothing", then_empty(s._replace(memory=m)), ()
        else:
            yield f"consumer: sees the tail {tail}", then_more(s._replace(memory=m)), ()


def peek(c, s, then_empty, then_taken):
    yield from glance(s, then_empty, then_taken, c.defect != "tail-not-acquired")


def consumer_steps(c, s):
    m = s.memory
    if s.mode == "poll":
        # As in HasMessage, a consumer that heard the end of the socket looks in any case.
        if s.gone:
            yield "consumer: has heard the end", s._replace(mode="peek"), ()
        else:
            yield from glance(s, lambda t: t._replace(mode="idle"), lambda t: t._replace(mode="peek"))
    elif s.mode == "peek":
        # As in Receive, the consumer heard the socket before this look.
        last = s.gone

        def empty(t):
            if c.defect == "gone-asked-after-the-ring" and t.hung is not None:
                return t._replace(mode="told")
            return t._replace(mode="told" if last else "idle")

        yield from peek(c, s, empty, lambda t: t._replace(mode="take"))
    elif s.mode == "take":
        for value, n, _ in load(m, CONSUMER, BYTES + s.took, False):
            t = s._replace(memory=n, took=s.took + 1, mode="peek")
            yield f"consumer: takes {value}", t, (() if value == s.took + 1 else (("torn",),))
    elif s.mode == "idle":
        if not s.gone:
            for heard in hear(c, s, "poll"):
                yield heard
        if s.turns < c.turns:
            for why in ("park",) * c.parks + ("sleep",) * c.sleeps:
                for n in store(m, CONSUMER, SLEEPING, 1, False):
                    begun = s._replace(memory=n, mode="begun", why=why, turns=s.turns + 1)
                    yield f"consumer: begins to {why}", begun, ()
        else:                                                           # The consumer polls for ever.
            for t in peek(c, s, lambda t: None, lambda t: t._replace(mode="take")):
                if t[1] is not None:
                    yield t
    elif s.mode == "begun":
        n = m if c.defect == "sleep-without-fence" else fence(m, CONSUMER, "seq_cst")
        if c.defect == "sleep-fence-acq-rel":
            n = fence(m, CONSUMER, "acq_rel")
        if c.defect == f"{s.why}-without-look":
            rest = "parked" if s.why == "park" else "asleep"
            yield "consumer: does not look again", s._replace(memory=n, mode=rest), ()
            return
        yield "consumer: fence", s._replace(memory=n, mode="look"), ()
    elif s.mode == "look":
        rest = "parked" if s.why == "park" else "asleep"
        yield from glance(s, lambda t: t._replace(mode=rest), lambda t: t._replace(mode="awake"))
    elif s.mode == "awake":
        yield from awake(c, s, "poll")
    elif s.mode == "asleep":
        yield from hear(c, s, "awake")
        if c.defect is None or c.defect.startswith("park"):
            # After Wake(), or when its time is over, the consumer takes its flag back, and polls.
            if s.turns < c.turns:
                yield "consumer: wakes by itself", s._replace(mode="awake"), ()
    elif s.mode == "parked":
        # Another channel may get a message. Or the queue sleeps, and then clears the flags of its other rings alone.
        yield from hear(c, s, "parked" if c.defect == "heard-and-not-unparked" else "awake")
        if c.defect == "unparked-by-the-end-of-a-sleep":
            for n in store(m, CONSUMER, SLEEPING, 0, False):
                yield "consumer: another sleep ends", s._replace(memory=n), ()


def awake(c, s, mode):
    for n in store(s.memory, CONSUMER, SLEEPING, 0, False):
        yield "consumer: takes its flag back", s._replace(memory=n, mode=mode, why=None), ()


def hear(c, s, mode):
    def acquired(view):
        seen = join(s.memory.seen[CONSUMER], view)
        return s.memory._replace(seen=put(s.memory.seen, CONSUMER, seen),
                                 taken=put(s.memory.taken, CONSUMER, join(s.memory.taken[CONSUMER], seen)))

    if s.rung:
        yield "consumer: hears a ring", s._replace(memory=acquired(s.rung[0]), rung=s.rung[1:], mode=mode), ()
    elif s.hung is not None and not s.gone:
        yield "consumer: hears the end", s._replace(memory=acquired(s.hung), gone=True, mode=mode), ()


class RingMonitor:
    """Its value is True: nothing is wrong so far."""
    start = True

    def after(self, m, event):
        return False

    def holds(self, m):
        return m


def ring_ends(c, s):
    """Returns the fault of a state in which nothing more happens, or in which the consumer told that the peer is
    gone."""
    if s.mode == "told" and s.took < c.messages:
        return ("the peer is told to be gone, and not all was taken",)
    done = s.step == "bytes" and s.message == c.messages and not s.rung and (not c.hangs_up or s.hung is not None)
    if done and s.mode in ("asleep", "parked") and not (s.hung is not None and not s.gone) and s.took < c.messages:
        return ("a sleeper that nobody wakes",)
    return ()


# --- Leaving.

# The producer writes, and then looks whether the consumer is gone. The consumer leaves, waits until nobody places
# bytes, and looks at its memory.
# acknowledged, placed: the Writes that are acknowledged, and those that are placed.
# found: the bytes that the consumer read.
# late: the producer placed bytes after the consumer looked.
Leave = namedtuple("Leave", "memory step write acknowledged placed mode found late")


def leave_start(c):
    return Leave(new_memory(c.locations, 2), "begin", 0, (), (), "there", (), False)


def sc_store(m, thread, location, value, weak):
    for n in store(m if weak else fence(m, thread, "seq_cst"), thread, location, value, True):
        yield n


def leave_steps(c, s):
    m, i = s.memory, s.write
    # The producer.
    if s.step == "begin" and i < c.writes:
        if not c.places:
            yield "producer: begins", s._replace(step="write"), ()
        else:
            for n in sc_store(m, PRODUCER, PLACING, 1, c.defect == "placing-relaxed"):
                yield "producer: places", s._replace(memory=n, step="look"), ()
    elif s.step == "look":
        fenced = m if c.defect == "placing-relaxed" else fence(m, PRODUCER, "seq_cst")
        for gone, n, _ in load(fenced, PRODUCER, GONE, True):
            yield f"producer: sees gone {gone}", s._replace(memory=n, step="stop" if gone else "write"), ()
    elif s.step == "write":
        for n in store(m, PRODUCER, BYTES + i, 1, False):
            late = s.mode in ("alone", "done")
            t = s._replace(memory=n, placed=s.placed + (i,), late=s.late or (late and c.places))
            yield f"producer: writes {i}", t._replace(step="ask"), ()
            if c.places:                                                # The producer does not ask for a completion.
                yield f"producer: writes {i}, unsignaled", t._replace(step="end"), ()
    elif s.step == "ask":
        order = {"gone-without-fence": "acquire", "gone-fence-acq-rel": "acq_rel"}.get(c.defect, "seq_cst")
        yield "producer: fence", s._replace(memory=fence(m, PRODUCER, order), step="asked"), ()
    elif s.step == "asked":
        for gone, n, _ in load(m, PRODUCER, GONE, True):
            acknowledged = s.acknowledged if gone else s.acknowledged + (i,)
            yield f"producer: sees gone {gone}", s._replace(memory=n, step="end", acknowledged=acknowledged), ()
    elif s.step in ("end", "stop"):
        after = "begin" if s.step == "end" else "over"
        if not c.places:
            yield "producer: goes on", s._replace(step=after, write=i + 1), ()
        else:
            for n in store(m, PRODUCER, PLACING, 0, c.defect != "placing-ends-relaxed"):
                yield "producer: places no more", s._replace(memory=n, step=after, write=i + 1), ()
    # The consumer.
    if s.mode == "there":
        for n in sc_store(m, CONSUMER, GONE, 1, c.defect == "leave-without-fence"):
            yield "consumer: leaves", s._replace(memory=n, mode="left"), ()
    elif s.mode == "left":
        n = m if c.defect == "leave-without-fence" else fence(m, CONSUMER, "seq_cst")
        yield "consumer: fence", s._replace(memory=n, mode="wait" if c.places else "alone"), ()
    elif s.mode == "wait":
        for placing, n, _ in load(m, CONSUMER, PLACING, True):
            yield f"consumer: sees placing {placing}", s._replace(memory=n, mode="wait" if placing else "alone"), ()
    elif s.mode == "alone":
        found = s.found
        for value, n, _ in load(m, CONSUMER, BYTES + len(found), False):
            more = found + (value,)
            yield (f"consumer: reads {value}",
                   s._replace(memory=n, found=more, mode="done" if len(more) == c.writes else "alone"), ())


def leave_ends(c, s):
    if s.late:
        return ("a byte is placed in memory that is used again",)
    if s.mode == "done" and any(not s.found[i] for i in (s.placed if c.places else s.acknowledged)):
        return ("a Write is missing that was acknowledged, or placed before the consumer looked",)
    return ()


def check(c, limit=3_000_000):
    start, steps, ends = ((leave_start(c), leave_steps, leave_ends) if c.writes else
                          (ring_start(c), ring_steps, ring_ends))

    def judged(s):
        for label, t, events in steps(c, s):
            yield label, t, tuple(events) + tuple((what,) for what in ends(c, t))

    return explore(start, judged, RingMonitor(), limit)


DESIGN = {
    "one message, the queue sleeps": Config(1, 2, parks=False),
    "one message, the ring is parked": Config(1, 2, sleeps=False),
    "one message, both": Config(1, 3),
    "two messages, the queue sleeps": Config(2, 2, parks=False),
    "two messages, the ring is parked": Config(2, 2, sleeps=False),
    "two messages, both": Config(2, 2),
    "one message, then the producer hangs up": Config(1, 2, hangs_up=True),
    "two messages, then the producer hangs up": Config(2, 1, hangs_up=True),
    "a Write, the consumer leaves": Config(0, writes=1),
    "two Writes, the consumer leaves": Config(0, writes=2),
    "a Write that is placed, the consumer leaves": Config(0, writes=1, places=True),
    "two Writes that are placed, the consumer leaves": Config(0, writes=2, places=True),
}
PLANTED = {
    "publish-without-fence": Config(1, 1, parks=False),                 # Ring::Publish
    "publish-fence-acq-rel": Config(1, 1, parks=False),
    "sleep-without-fence": Config(1, 1, parks=False),                   # Ring::FenceSleep, in Arm and in ParkSilent
    "sleep-fence-acq-rel": Config(1, 1, sleeps=False),
    "sleep-without-look": Config(1, 1, parks=False),                    # Arm
    "park-without-look": Config(1, 1, sleeps=False),                    # ParkSilent
    "heard-and-not-unparked": Config(1, 1, sleeps=False),               # OnSocket
    "unparked-by-the-end-of-a-sleep": Config(1, 1, sleeps=False),       # EndSleep of a parked channel
    "tail-not-released": Config(1, 1, sleeps=False),
    "tail-not-acquired": Config(1, 1, sleeps=False),
    "gone-asked-after-the-ring": Config(2, 1, hangs_up=True),           # Receive
    "gone-without-fence": Config(0, writes=1),                          # Ring::ConsumerIsGone
    "gone-fence-acq-rel": Config(0, writes=1),
    "leave-without-fence": Config(0, writes=1),                         # Ring::Leave
    "placing-relaxed": Config(0, writes=1, places=True),                # Ring::BeginPlacing
    "placing-ends-relaxed": Config(0, writes=1, places=True),           # Ring::EndPlacing
}


if __name__ == "__main__":
    sys.exit(main(__doc__, check, DESIGN, PLANTED))
