"""What makes the documents: pictures of the screen, the reference of commands."""
