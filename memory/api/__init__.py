"""HTTP of the memory app."""
