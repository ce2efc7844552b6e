"""Run one command so that it cannot outlive the process that wanted it.

A program, not a module: `python -I -S keeper.py UID GID PATIENCE STDIN COMMAND…`. It starts the
command, writes its pid to stdout, and ends with its exit status. Its stdin is the lifeline: when
the last holder of the other end is gone, by exit or by kill -9, it stops the command with SIGINT
(PostgreSQL: fast shutdown), and after PATIENCE seconds with SIGQUIT (immediate shutdown).

Why a process between: PR_SET_PDEATHSIG fires when the *thread* that forked ends, and the service
may start its database from any thread. This program has one thread for its whole life, so the
command can safely ask to be told of its death; and the pipe works where there is no prctl. It
also forks without the danger of running Python between fork and exec of a threaded process.

It stands in a session of its own and ignores the terminal's signals: Ctrl-C must reach the
service first, which drains while its database still answers.
"""

import ctypes
import os
import select
import signal
import sys

PR_SET_PDEATHSIG = 1
PATIENCE_AFTER_QUIT = 30.0
COULD_NOT_EXECUTE = 127


def main(arguments: list[str]) -> int:
    """Start, wait, and pass the exit status on."""
    uid, gid, patience, stdin, *command = arguments
    woken = _wake_on_child()
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, uid=int(uid), gid=int(gid), stdin=stdin, parent=keeper)
    os.write(1, f"{child}\n".encode())
    os.close(1)
    return _keep(child, woken, float(patience))


def _wake_on_child() -> int:
    """A descriptor that becomes readable when the child ends."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken


def _become(command: list[str], *, uid: int, gid: int, stdin: str, parent: int) -> None:
    """Turn the forked child into the command; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        for changed in ("SIGCHLD", "SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, changed), signal.SIG_DFL)
        os.umask(0o077)
        os.dup2(os.open(stdin, os.O_RDONLY), 0)
        os.dup2(2, 1)
        os.chdir("/")
        if uid != os.geteuid():
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        # A change of uid clears the death signal, so it is asked for after it.
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked to be told
            os._exit(COULD_NOT_EXECUTE)
        os.execv(command[0], command)  # noqa: S606 -- to replace ourselves is the purpose
    except OSError as error:
        os.write(2, f"could not run {command[0]}: {error}\n".encode())
    os._exit(COULD_NOT_EXECUTE)


def _keep(child: int, woken: int, patience: float) -> int:
    """Wait for the child; stop it when the lifeline is cut."""
    lifeline, timeout = [sys.stdin.fileno()], None
    last_word = signal.SIGINT
    while True:
        ready, _, _ = select.select([*lifeline, woken], [], [], timeout)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if woken in ready:
            os.read(woken, 4096)
        if lifeline and lifeline[0] in ready:
            lifeline, timeout = [], patience
            os.kill(child, last_word)
        elif not ready:
            # Never SIGKILL: a killed postmaster leaves backends writing behind its back.
            last_word, timeout = signal.SIGQUIT, PATIENCE_AFTER_QUIT
            os.kill(child, last_word)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
