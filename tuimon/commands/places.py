"""Whether a file can be written somewhere: seen before anything is started, rather than when there is a report to lose."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def why_no_folder(folder: Path) -> str | None:
    """Why nothing can be put into that folder; None where it can be, as far as can be seen. Raises nothing."""
    try:
        found = os.stat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no directory {folder}"
    except OSError as error:
        return f"the directory {folder} cannot be looked into: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is no directory"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"the directory {folder} cannot be written into by this user"
    return None


def why_no_file(path: Path, what: str = "the report") -> str | None:
    """Why `what` cannot be written into that file; None where it can be, as far as can be seen. Raises nothing."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return why_no_folder(path.parent)
    except OSError as error:
        return why_no_folder(path.parent) or f"{path} cannot be a file: {error.strerror}"
    if stat.S_ISDIR(found.st_mode):
        return f"{path} is a directory; name a file for {what}"
    return None if os.access(path, os.W_OK) else f"{path} cannot be written by this user; name another file for {what}"
