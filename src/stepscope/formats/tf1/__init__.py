"""What TensorFlow 1 sessions record: StepStats and RunMetadata, and the Timelines made of them."""
