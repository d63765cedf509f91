"""One file per group; each yields its ``Group`` from ``prepared(full=...)`` and cleans up after itself."""
