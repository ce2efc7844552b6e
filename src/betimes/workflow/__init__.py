"""What next: pure functions over the graph of a workflow run."""
