"""What devices exchange with each other: one rank's collectives, their groups, sizes and links."""
