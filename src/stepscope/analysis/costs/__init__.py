"""What ops compute and move: formulas by op, and whose device ops did it."""
