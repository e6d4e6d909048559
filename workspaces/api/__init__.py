"""HTTP of the workspaces app."""
