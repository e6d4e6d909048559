"""A process that ends with the one that started it."""

import ctypes
import os
import signal
import sys
import threading
import time
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_LOOK_S = 1.0


def end_with_parent(parent: int) -> None:
    """From now on this process gets SIGTERM when process `parent`, its own parent, ends; or at once if it has.

    At the moment it ends on Linux; within a second elsewhere. On Linux a parent's thread counts as the
    parent, if it was that thread that started us.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the line above
            os.kill(os.getpid(), signal.SIGTERM)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> NoReturn:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), signal.SIGTERM)
    raise SystemExit
