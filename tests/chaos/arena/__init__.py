"""The plugin whose runs are watched."""
