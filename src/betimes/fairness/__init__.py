"""Who next: weighted picks, quota arithmetic and token buckets over plain values."""
