"""Nouns of the scheduler: frozen values, enums, ids, the error tree. Imports nothing of ours."""
