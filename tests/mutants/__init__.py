"""Every single-row mutation of every protocol table, and whether the protocol's tests notice it."""
