"""Run a program as another user, detached from the terminal, or tied to the life of its parent.

A script of its own (standard library only, started with ``python -I -S``), because these steps lie between
fork and exec, and running Python there is not safe in a process that has threads.
"""

import argparse
import ctypes
import os
import re
import signal
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_GET_SECUREBITS, _PR_SET_SECUREBITS = 27, 28
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2


def as_user(command: Sequence[str], *, uid: int, gid: int) -> list[str]:
    """The command line that runs `command` as that user, who may enter folders closed to others."""
    return [*_launcher(), "--user", str(uid), str(gid), "--", *command]


def detached(command: Sequence[str]) -> list[str]:
    """The command line that starts `command` in a session of its own, adopted by init, and ends at once."""
    return [*_launcher(), "--detach", "--", *command]


def tied_to(parent: int, command: Sequence[str]) -> list[str]:
    """The command line that runs `command` until process `parent`, its own parent, ends (then: SIGTERM).

    On Linux only; elsewhere the command simply runs.
    """
    return [*_launcher(), "--tied-to", str(parent), "--", *command]


def _launcher() -> list[str]:
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve())]


def _prctl(*arguments: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    answer: int = libc.prctl(*map(ctypes.c_ulong, arguments))
    if answer < 0:
        raise OSError(ctypes.get_errno(), f"prctl{arguments}: {os.strerror(ctypes.get_errno())}")
    return answer


def _become(uid: int, gid: int) -> None:
    """Become that user for good, keeping at most the capability to pass folders closed to others.

    Root's checkouts live in folders such as /root, which nobody else may enter; opening those folders to
    everybody would be the alternative. Where the machine withholds the capability, the plain user remains.
    """
    capability = _search_capability()
    if capability is not None:
        # Without this bit access(2) ignores capabilities, and Postgres asks it about its own program.
        _prctl(_PR_SET_SECUREBITS, _prctl(_PR_GET_SECUREBITS, 0, 0, 0, 0) | _SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if capability is not None:
        mask = 1 << capability
        libc = ctypes.CDLL(None, use_errno=True)
        header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
        # (effective, permitted, inheritable) for capabilities 0-31, then for 32-63: all others are dropped.
        if libc.capset(header, struct.pack("=6I", mask, mask, mask, 0, 0, 0)) < 0:
            raise OSError(ctypes.get_errno(), "capset")
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability, 0, 0)


def _search_capability() -> int | None:
    """The weakest capability held that enters closed folders; None where there is none (or no Linux)."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = re.search(r"^CapPrm:\s*([0-9a-f]+)$", status, re.MULTILINE)
    permitted = int(found[1], 16) if found else 0
    can_set_securebits = permitted & (1 << 8)  # CAP_SETPCAP
    held = [cap for cap in (_CAP_DAC_READ_SEARCH, _CAP_DAC_OVERRIDE) if permitted & (1 << cap)]
    return held[0] if held and can_set_securebits else None


def _detach() -> None:
    """Go on in a grandchild with a session of its own; the process that was started ends here, with 0."""
    if os.fork():
        os._exit(0)
    os.setsid()


def _tie_to(parent: int) -> None:
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the line above
            sys.exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--user", nargs=2, type=int)
    parser.add_argument("--detach", action="store_true")
    parser.add_argument("--tied-to", type=int)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if options.detach:
        _detach()
    if options.tied_to is not None:
        _tie_to(options.tied_to)
    if options.user is not None:
        _become(*options.user)
    os.execvp(options.command[0], options.command)  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main()
