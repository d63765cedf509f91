"""The states of tenants: suspended ones refuse changes, deleted ones are torn down by every hosted module."""
