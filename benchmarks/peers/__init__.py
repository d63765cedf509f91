"""What our figures stand beside: each folder is one peer, with what it runs and how it is configured."""
