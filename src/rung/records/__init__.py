"""Records: items, types, labels, canonical forms, ids and the clock."""
