"""The only room with SQL: rows in, domain values out."""
