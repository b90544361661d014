"""What a step would take if something were different: a dependency graph of the profile, replayed."""
