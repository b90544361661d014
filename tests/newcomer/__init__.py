"""Jobs as a new user has them, under ``stepscope run``: causes, lines, promises, and what cures achieve."""
