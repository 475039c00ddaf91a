"""A machine to boot: a kernel, and a root file system of Debian packages as an initial RAM disk.

Packages come from apt alone, through a configuration of our own in the cache directory: the system's packages, lists and
foreign architectures stay as they are, and no root is needed. Nothing is installed in the image, only unpacked: Python's
standard library is all that the tests in the machine need.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = os.environ.get("TUIMON_MIRROR", "http://deb.debian.org/debian")
ROOT_PACKAGES = ("python3", "python3-minimal", "libpython3-stdlib", "mount", "util-linux", "coreutils", "dash", "procps")
USERS = "root:x:0:0:root:/root:/bin/sh\none:x:1000:1000::/tmp:/bin/sh\ntwo:x:1001:1001::/tmp:/bin/sh\n"


class Recipe(NamedTuple):
    """Which Debian the machine is made of."""

    suite: str
    architecture: str
    kernel: str
    """A metapackage: what it depends on is the kernel's own package."""


class Image(NamedTuple):
    """Two files for the emulator."""

    kernel: Path
    root: Path
    """A cpio archive, compressed; another one may be put behind it."""


RECIPES = {
    "bookworm": Recipe("bookworm", "arm64", "linux-image-arm64"),
    "trixie": Recipe("trixie", "arm64", "linux-image-arm64"),
    "trixie-16k": Recipe("trixie", "arm64", "linux-image-arm64-16k"),
}


def make(name: str, cache: Path) -> Image:
    """The image of a recipe, made where the cache has none. Raises OSError or subprocess.CalledProcessError."""
    recipe = RECIPES[name]
    place = cache / name
    image = Image(place / "vmlinuz", place / "root.cpio.gz")
    if image.kernel.exists() and image.root.exists():
        return image
    place.mkdir(parents=True, exist_ok=True)
    apt = Apt(recipe, place / "apt")
    for package in apt.download(apt.depends(recipe.kernel, "linux-image-"), alone=True):
        unpack(package, place / "kernel")
    (found,) = (place / "kernel" / "boot").glob("vmlinuz-*")
    tree = place / "tree"
    for package in apt.download(*ROOT_PACKAGES):
        unpack(package, tree)
    for part in ("usr/share/doc", "usr/share/locale", "usr/share/man", "var/lib", "lib/udev", "usr/lib/udev"):
        shutil.rmtree(tree / part, ignore_errors=True)
    for part in ("proc", "sys", "dev", "run", "tmp", "root", "etc"):
        (tree / part).mkdir(exist_ok=True)
    (tree / "etc/passwd").write_text(USERS, encoding="ascii")
    with gzip.open(place / "root.part", "wb", compresslevel=1) as file:
        file.writelines(archive(tree))
    os.replace(place / "root.part", image.root)
    shutil.copy(found, image.kernel)
    for rest in ("kernel", "tree", "apt"):
        shutil.rmtree(place / rest, ignore_errors=True)
    return image


class Apt:
    """apt with lists, state and cache of its own."""

    def __init__(self, recipe: Recipe, place: Path) -> None:
        self.place = place.resolve()
        for part in ("lists/partial", "archives/partial", "etc/apt.conf.d", "etc/preferences.d", "etc/trusted.gpg.d"):
            (self.place / part).mkdir(parents=True, exist_ok=True)
        (self.place / "status").touch()
        where = f"[arch={recipe.architecture} signed-by={KEYS}] {MIRROR} {recipe.suite} main\n"
        (self.place / "etc/sources.list").write_text(f"deb {where}", encoding="ascii")
        settings = {
            "Dir::Etc": f"{self.place}/etc",
            "Dir::State": f"{self.place}",
            "Dir::State::lists": f"{self.place}/lists",
            "Dir::State::status": f"{self.place}/status",
            "Dir::Cache": f"{self.place}",
            "Dir::Cache::archives": f"{self.place}/archives",
            "APT::Architecture": recipe.architecture,
            "APT::Architectures": recipe.architecture,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",
        }
        self.options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        self._run("apt-get", "update")

    def _run(self, *words: str) -> str:
        done = subprocess.run([words[0], *self.options, *words[1:]], check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout

    def depends(self, package: str, prefix: str) -> str:
        """The first package with such a name that `package` depends on."""
        for line in self._run("apt-cache", "depends", package).splitlines():
            kind, _, name = line.strip().partition(": ")
            if kind == "Depends" and name.startswith(prefix):
                return name
        raise OSError(f"{package} depends on no {prefix}*")

    def download(self, *packages: str, alone: bool = False) -> list[Path]:
        """The packages' files, with all that they depend on unless `alone`."""
        archives = self.place / "archives"
        for old in archives.glob("*.deb"):
            old.unlink()
        if alone:
            subprocess.run(["apt-get", *self.options, "download", "-q", *packages], check=True, cwd=archives)
        else:
            self._run("apt-get", "install", "-y", "-q", "--download-only", *packages)
        return sorted(archives.glob("*.deb"))


def unpack(package: Path, into: Path) -> None:
    """What a package holds, without running its scripts."""
    if not into.exists():
        # the links of a merged /usr, before anything is put behind them
        for name in ("bin", "sbin", "lib"):
            (into / "usr" / name).mkdir(parents=True)
            (into / name).symlink_to(f"usr/{name}")
    files = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    subprocess.run(
        ["tar", "-x", "-C", into, "--keep-directory-symlink", "--no-same-owner", "-f", "-"], stdin=files.stdout, check=True
    )
    if files.wait():
        raise OSError(f"{package} cannot be unpacked")


def archive(tree: Path) -> Iterator[bytes]:
    """A directory as the kernel takes it for a root: cpio in the "newc" layout, everything owned by root."""
    number = 0
    for directory, directories, names in os.walk(tree):
        for name in sorted(directories) + sorted(names):
            path = Path(directory, name)
            number += 1
            yield from _entry(number, str(path.relative_to(tree)), path)
    yield _header(0, "TRAILER!!!", 0, 0)


def _entry(number: int, name: str, path: Path) -> Iterator[bytes]:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        data = os.readlink(path).encode()
    elif stat.S_ISREG(mode):
        data = path.read_bytes()
    elif stat.S_ISDIR(mode):
        data = b""
        if name == "tmp":
            mode |= 0o1777
    else:
        return
    yield _header(number, name, mode, len(data))
    yield data + bytes(-len(data) % 4)


def _header(number: int, name: str, mode: int, size: int) -> bytes:
    raw = name.encode() + b"\0"
    # inode, mode, uid, gid, links, time, size, four device numbers, length of the name, checksum
    fields = (number, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
    return head + bytes(-len(head) % 4)
