"""The search that the models share: every run of a model, breadth first, so that a broken run is a shortest one.

A monitor knows what the events of a run allow: `start`, `after(m, event)`, and `holds(m)`, false if nothing is left that
would explain them. Its values and the states are hashable.

A node is a state and what the monitor makes of the run to it. Many nodes have one state, so its steps are made once, and
its monitors follow them; and many steps lead to one state, so each is tidied once.
"""
import gc
from collections import deque

gc.disable()                                                            # nothing here forms cycles, and all is kept


class States:
    """Numbers of states, in the order they are met, and the steps of each."""

    def __init__(self, steps, tidy):
        self.steps, self.tidy = steps, tidy
        self.all = []
        self.numbers = {}                                               # of tidy states
        self.met = {}                                                   # the same, of the states as the steps left them
        self.nexts = []                                                 # of each state: (label, state, events), or None

    def number(self, s):
        n = self.met.get(s)
        if n is None:
            t = self.tidy(s)
            n = self.numbers.setdefault(t, len(self.all))
            if n == len(self.all):
                self.all.append(t)
                self.nexts.append(None)
            self.met[s] = n
        return n

    def after(self, n):
        if self.nexts[n] is None:
            self.nexts[n] = [(label, self.number(t), events) for label, t, events in self.steps(self.all[n])]
        return self.nexts[n]


def explore(state, steps, monitor, limit, tidy=lambda s: s):
    """steps(state) yields (label, next state, events). Returns whether all runs hold (None: there are more nodes than
    `limit`), their number, and the steps of a run that does not."""
    states = States(steps, tidy)
    start = (states.number(state), monitor.start)
    number = {start: 0}
    came = [(0, None)]                                                  # of each node: the node before, and the step
    todo = deque([start])
    while todo:
        node = todo.popleft()
        s, m = node
        here = number[node]
        for label, t, events in states.after(s):
            n = m
            for e in events:
                n = monitor.after(n, e)
            nxt = (t, n)
            if nxt in number:
                continue
            number[nxt] = len(came)
            came.append((here, label))
            if not monitor.holds(n):
                return False, len(came), path(came, number[nxt])
            todo.append(nxt)
            if len(came) > limit:
                return None, len(came), []
    return True, len(came), []


def path(came, n):
    out = []
    while n:
        n, label = came[n]
        out.append(label)
    return out[::-1]
