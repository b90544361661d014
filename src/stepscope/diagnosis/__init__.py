"""Rules over facts: findings ranked by what their fix saves, and notices about the profile."""
