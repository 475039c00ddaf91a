"""What the live tests share: compiled code is cached in a folder of the test run, so that only the first job compiles it, and
by itself: a job's compile workers would each import torch."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def compile_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Jobs inherit where inductor keeps its artifacts; the user's own cache is neither used nor filled."""
    ours = tmp_path_factory.getbasetemp()
    folder = (ours.parent if "PYTEST_XDIST_WORKER" in os.environ else ours) / "inductor"  # one for all workers
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("TORCHINDUCTOR_CACHE_DIR", str(folder)), ("TORCHINDUCTOR_COMPILE_THREADS", "1")):
            if name not in os.environ:
                patch.setenv(name, value)
        yield
