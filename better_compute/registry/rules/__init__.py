"""The registration rules, one file per noun: each yields what the hosted modules break, all at once.

A rule reads specs that :mod:`better_compute.registry.shape` made sound, and queries no database.
"""
