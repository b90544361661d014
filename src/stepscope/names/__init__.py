"""What names mean: pure functions from a recorded name to facts, called once per unique name."""
