"""Sources: what produces items for a turn."""
