"""Two profiles beside each other: what changed, by how much, and whether that is more than noise."""
