"""What the compiled programs in a profile compute: costs of their instructions, their text, and their neighbours."""
