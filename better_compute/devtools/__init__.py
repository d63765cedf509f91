"""A whole installation on one machine, for development, the demo and the tests."""
