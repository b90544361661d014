"""Inputs: where a path leads, and its bytes: folders, archives, mapped and compressed files, object stores."""
