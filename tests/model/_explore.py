"""The search that the models share: every run of a model, breadth first, so that a broken run is a shortest one.

A monitor knows what the events of a run allow: `start`, `after(m, event)`, and `holds(m)`, false if nothing is left that
would explain them. Its values and the states are hashable.
"""
from collections import deque


def explore(state, steps, monitor, limit, tidy=lambda s: s):
    """steps(state) yields (label, next state, events). Returns whether all runs hold (None: there are more states than
    `limit`), the number of states, and the steps of a run that does not."""
    start = (state, monitor.start)
    number = {start: 0}
    came = [(0, None)]                                                  # of each node: the node before, and the step
    todo = deque([start])
    while todo:
        node = todo.popleft()
        s, m = node
        here = number[node]
        for label, t, events in steps(s):
            n = m
            for e in events:
                n = monitor.after(n, e)
            nxt = (tidy(t), n)
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
