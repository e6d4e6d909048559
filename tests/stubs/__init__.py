"""Local servers that speak the wire formats of the services we call."""
