"""Other job queues on PostgreSQL, measured beside ours with the same steps."""
