"""What the local server is made of."""
