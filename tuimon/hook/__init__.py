"""All that runs inside the job.

These files travel into the job as text and are executed there in fresh modules, so they use Python 3.10 syntax, the standard
library and nothing else; torch is looked at only once the job itself has imported it. `session` is the way in.
"""
