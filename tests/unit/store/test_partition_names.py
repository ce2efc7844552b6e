"""Days of tables as logs name them."""

from datetime import date

from betimes.store.partitions import Partition


def test_a_partition_is_told_by_the_name_of_its_table() -> None:
    """Whoever reads that a day could not be dropped looks for it in the database."""
    assert str(Partition("runs", date(2026, 10, 2), 40960)) == "runs_20261002"
