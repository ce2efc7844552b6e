"""What the parts share: a durable server, processes, rows in bulk, figures."""
