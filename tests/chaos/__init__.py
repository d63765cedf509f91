"""Real worker processes under load and under every mishap at once; ``python -m tests.chaos``, or ``make chaos``."""
