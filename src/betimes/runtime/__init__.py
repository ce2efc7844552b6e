"""The runtime of users' apps: `betimes worker run module:app`.

One worker, whatever the way to the service: everything it asks for and reports goes through a
`Line`. Over HTTP a line is a client of the worker protocol; directly on the database it is the same
verbs without the network in between. What is held, trusted, stopped and reported is decided here.
"""
