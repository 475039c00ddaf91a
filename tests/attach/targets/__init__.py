"""Programs to attach to that need torch. They run under whatever Python is to be tried, so they import nothing of ours."""
