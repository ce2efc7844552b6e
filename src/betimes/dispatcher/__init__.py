"""The dispatcher: tells those who want to know.

router    events that have arrived → deliveries in the mailboxes of endpoints
courier   mailboxes in which something is due → requests, mails, and what came of them
watcher   stored facts → episodes of alerts, told as events
"""
