"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# a busy machine is no failure: no test may depend on how long something takes; and what is tried is the same in each run, so
# that a change is judged by what it changes
settings.register_profile("tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
