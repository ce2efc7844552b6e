"""Betimes: a distributed, multi-tenant job scheduler.

*betimes* (adv.): in good time, before it is too late.
"""

__version__ = "0.1.0.dev0"
