"""What a module declares: plain data and abstract classes, no Django query and no SQL.

Every other room imports from here; this room imports from none of them.
"""
