"""The ledger: the only door through which items enter (decide, then write)."""
