"""Settings: file < environment < flags, and sentences for everything that is wrong with them."""
