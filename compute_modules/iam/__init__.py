"""Who may do what: principals, a tree of tenants, roles, grants, tokens, and an authorizer that judges by them."""
