"""Cures tried on the user's own job: each in processes of its own, in turns with the unchanged job."""
