"""The system calls that attaching has a job make, for `seccomp` to ask its filters about before any of them is made.

A call that is missing here can cost the job its life: tests/attach/test_seccomp_calls.py watches for such. Where a filter might
look at an argument that says what a call does, the call is listed with each that occurs.
"""

from __future__ import annotations

_READ, _RW, _RX, _NONE = 0x1, 0x3, 0x5, 0x0
_PRIVATE, _FIXED, _DENYWRITE, _PRIVATE_ANONYMOUS = 0x2, 0x10, 0x800, 0x22
_FIXED_NOREPLACE = 0x100000
_STACK = 0x20000
_NEW_THREAD = 0x3D0F00  # the flags that pthread_create gives to clone
_AF_UNIX, _STREAM_CLOEXEC = 1, 0x80001

Need = tuple[str, tuple[int | None, int | None], tuple[int, ...]]
"""Name, numbers (x86_64, aarch64; None: not there), arguments."""

BORROWED: tuple[Need, ...] = (
    ("mmap", (9, 222), (0, 1 << 17, _RW, _PRIVATE_ANONYMOUS | _FIXED_NOREPLACE, -1, 0)),
    ("mprotect", (10, 226), (0, 4096, _RX)),
    ("munmap", (11, 215), (0, 1 << 17)),
)
THREAD: tuple[Need, ...] = (
    ("mmap", (9, 222), (0, 1 << 23, _NONE, _PRIVATE_ANONYMOUS | _STACK, -1, 0)),
    ("mprotect", (10, 226), (0, 1 << 23, _RW)),
    ("futex", (202, 98), (0, 128)),
)
EITHER: tuple[Need, ...] = (("clone3", (435, 435), (0, 88)), ("clone", (56, 220), (_NEW_THREAD, 0)))
HOOK: tuple[Need, ...] = (
    ("socket", (41, 198), (_AF_UNIX, _STREAM_CLOEXEC, 0)),
    ("connect", (42, 203), ()),
    ("getsockopt", (55, 209), (0, 1, 17)),
    ("sendto", (44, 206), ()),
    ("recvfrom", (45, 207), ()),
    ("recvmsg", (47, 212), (0, 0, 0x40000000)),
    ("poll", (7, None), ()),
    ("ppoll", (None, 73), ()),
    ("close", (3, 57), (1000,)),
)
MAY_FAIL_WITH: tuple[Need, ...] = (
    ("mmap", (9, 222), (0, 4096, _READ, _PRIVATE | _DENYWRITE, 3)),  # an extension module that an import loads
    ("mmap", (9, 222), (0, 4096, _RX, _PRIVATE | _FIXED | _DENYWRITE, 3)),
    ("mprotect", (10, 226), (0, 4096, _READ)),
    *(("futex", (202, 98), (0, operation)) for operation in (0x80, 0x81, 0x89, 0x189)),  # waits (of locks, with a time), a wake
    *(("madvise", (28, 233), (0, 4096, advice)) for advice in (4, 102)),  # DONTNEED of an ended stack, a new one's guard
    ("fcntl", (72, 25), (3, 0x406, 512)),  # F_DUPFD_CLOEXEC
    *(("ioctl", (16, 29), (3, request)) for request in (0x5401, 0x5421)),  # TCGETS of a file opened, FIONBIO
    *(("openat", (257, 56), (-100, 0, flags)) for flags in (0, 0x80000, 0x90800, 0x800C1)),  # read, list, write a .pyc
    ("prctl", (157, 167), (15,)),  # PR_SET_NAME
)
MAY_FAIL = {
    "restart_syscall": (219, 128), "rt_sigprocmask": (14, 135), "set_robust_list": (273, 99), "rseq": (334, 293),
    "sched_getaffinity": (204, 123), "exit": (60, 93), "gettid": (186, 178), "rt_sigaction": (13, 134),
    "getpid": (39, 172), "geteuid": (107, 175), "read": (0, 63), "pread64": (17, 67), "fstat": (5, 80),
    "newfstatat": (262, 79), "statx": (332, 291), "stat": (4, None), "lstat": (6, None), "lseek": (8, 62), "open": (2, None),
    "getdents64": (217, 61), "readlink": (89, None), "readlinkat": (267, 78), "unlink": (87, None), "unlinkat": (263, 35),
    "getcwd": (79, 17), "getrandom": (318, 278), "shutdown": (48, 210), "sched_yield": (24, 124), "mremap": (25, 216),
    "clock_nanosleep": (230, 115), "clock_gettime": (228, 113), "brk": (12, 214), "rt_sigreturn": (15, 139),
    "getsockname": (51, 204), "epoll_create1": (291, 20), "select": (23, None), "pselect6": (270, 72), "write": (1, 64),
    "mkdir": (83, None), "mkdirat": (258, 34), "rename": (82, None), "renameat": (264, 38), "access": (21, None),
    "faccessat": (269, 48), "getcpu": (309, 168), "membarrier": (324, 283), "prlimit64": (302, 261),
}  # fmt: skip
"""What is made besides, by Python, its imports (which may have to write a .pyc) and libc. Where one fails, no harm is done."""
