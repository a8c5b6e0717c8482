"""Policy: rules as data, and decisions with their reasons. Pure: nothing here reads or writes."""
