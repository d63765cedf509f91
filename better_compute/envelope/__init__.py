"""One call's way: route, codec, identity, authorization, the transaction, audit, and the answer or the problem."""
