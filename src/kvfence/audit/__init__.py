"""The audit: what running engines and their logs say of pools, contexts and settings, held against rules."""
