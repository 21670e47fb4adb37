"""The search that the models share. It explores every run of a model breadth first, so a broken run is a shortest one.

A monitor knows what the events of a run allow. It has `start`, `after(m, event)` and `holds(m)`, which is false if no
explanation of the events is left. The values of the monitor and the states are hashable.

A node is a state and the monitor's value after the run to it. Many nodes share a state, so the search makes the steps
of a state once. Many steps lead to the same state, so the search tidies a state once.
"""
import gc
from collections import deque

gc.disable()  # The objects here form no cycles, and live until the end.


class States:
    """Numbers the states in the order in which the search meets them. Keeps the steps of each state."""

    def __init__(self, steps, tidy):
        self.steps, self.tidy = steps, tidy
        self.all = []
        self.numbers = {}  # Of tidy states.
        self.met = {}  # The same numbers, of states before they were tidied.
        self.nexts = []  # For each state its (label, state, events), or None.

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
    """Explores all runs from `state`. steps(state) yields (label, next state, events).

    Returns whether all runs hold, the number of nodes, and the steps of a run that breaks. The first is None if there
    are more nodes than `limit`. tidy(state) returns an equal state without what no step can reach.
    """
    states = States(steps, tidy)
    start = (states.number(state), monitor.start)
    number = {start: 0}
    came = [(0, None)]  # For each node: the node before it, and the step.
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
    """Returns the steps from the start to node n."""
    out = []
    while n:
        n, label = came[n]
        out.append(label)
    return out[::-1]
