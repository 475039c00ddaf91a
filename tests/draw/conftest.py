"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import settings

# a busy machine is no failure: no test here may depend on how long something takes
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
