"""Runs reconcilers: shards, members, leases, drain, wake-up, and the contexts that modules are given."""
