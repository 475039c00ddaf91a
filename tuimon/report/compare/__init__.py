"""Two models beside each other: first whether they did the same work, then what differs; `build` is the door."""
