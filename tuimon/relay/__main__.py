"""`python -m tuimon.relay`: the far end, as `tuimon relay`."""

import sys

from tuimon.relay.far import main

sys.exit(main())
