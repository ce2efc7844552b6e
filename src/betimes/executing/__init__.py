"""Where handlers run: threads, processes, a loop beside the main one; and what comes of them.

Used by the worker that works on the database and by the runtime of users' apps alike; nothing here
knows where runs come from.
"""
