"""The composition root: the only room that knows everyone, and the only one that asks the machine.

`run` builds a node from settings, `supervise` keeps its roles alive, `signals` hears the outside.
"""
