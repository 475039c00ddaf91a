"""Which processes of a machine are PyTorch jobs, what they are to each other, and which are meant by a pid."""
