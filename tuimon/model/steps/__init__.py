"""Steps: where they end, what they are made of, and what of their time went where."""
