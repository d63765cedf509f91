"""Figures of the issues beside their peers, measured in the same run (``make bench``)."""
