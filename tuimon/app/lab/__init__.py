"""The roofline lab as a screen of its own and beside a job."""
