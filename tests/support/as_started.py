"""The interpreter as the command line sets it up, for programs that go round it: import this first."""

import gc

gc.set_threshold(20_000, 20, 50)
