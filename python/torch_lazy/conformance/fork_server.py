"""Starts workers from a process that has imported torch already. To import it takes seconds of a
processor, and the kit starts a worker for each section and another wherever one died.

This file is the server's script as well, which is run by its path: it imports nothing of
torch_lazy. It imports torch without the devices that packages bring, so that no driver is loaded
where it forks; a worker loads them before anything else, as `import torch` would have done.

What Python and a library read of the environment when they are loaded is the server's
(PYTHONHASHSEED, OMP_NUM_THREADS), all else the worker's own. Nor do workers differ in where
libtorch lies: what must not depend on that needs processes that are started anew.

The server has one thread of Python's. It ends with the `with` statement, or with the process that
started it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import subprocess
import sys
import types
import warnings
from collections.abc import Mapping, Sequence
from typing import IO, Any

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_STREAMS = 3  # standard input, output and error
_NUMBER = struct.Struct("i")  # what the server tells of a process: its number, then how it ended
_START_SECONDS = 180.0  # for the server to import torch
_DEAD = "the process that starts workers has died, or has not imported torch in time"


class Worker:
    """A process of a :class:`ForkServer`, to be used as a `subprocess.Popen` of text."""

    def __init__(self, stdin: IO[str], stdout: IO[str] | None, status: socket.socket):
        self.stdin, self.stdout = stdin, stdout
        self._status = status
        self._code: int | None = None
        try:
            self.pid = self._told(_START_SECONDS)
        except TimeoutError:
            raise RuntimeError(_DEAD) from None

    def _told(self, timeout: float | None) -> int:
        self._status.settimeout(timeout)
        number = self._status.recv(_NUMBER.size, socket.MSG_WAITALL)
        if len(number) < _NUMBER.size:
            raise RuntimeError(_DEAD)
        return _NUMBER.unpack(number)[0]

    def send_signal(self, number: int) -> None:
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, or the number of the signal that ended it, negative; raises TimeoutError
        after so many seconds."""
        if self._code is None:
            self._code = self._told(timeout)
            self._status.close()
        return self._code


class ForkServer:
    """Runs within a `with` statement. Threads may share it."""

    _control: socket.socket
    process: subprocess.Popen
    _owner: int  # the process that started it, which alone may end it

    def __enter__(self) -> ForkServer:
        self._owner = os.getpid()
        self._control, servers_end = socket.socketpair()
        inherited = servers_end.fileno()
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", __file__, str(inherited)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[inherited],
            env={**os.environ, _AUTOLOAD: "0"},
        )
        servers_end.close()
        return self

    def __exit__(self, *error: object) -> None:
        if os.getpid() != self._owner:
            return
        with contextlib.suppress(OSError):  # it has died
            self._control.shutdown(socket.SHUT_WR)  # children may have copies
        self._control.close()
        try:
            self.process.wait(10.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stderr: IO[str] | None,
        stdout: IO[str] | None = None,
    ) -> Worker:
        """Does what `python -X faulthandler ARGUMENTS` does, which have to begin with `-m MODULE`
        or `-c CODE`; the standard input is a pipe, and so is the output without `stdout`. Raises
        RuntimeError where the server is not there any more."""
        if arguments[0] not in ("-m", "-c"):
            raise ValueError(f"a worker begins with -m or with -c, not with {arguments[0]!r}")
        stdin, our_stdin = os.pipe()
        our_stdout, pipe = os.pipe() if stdout is None else (None, None)
        status, our_status = socket.socketpair()
        request = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": os.getcwd(),
        }
        streams = [stdin, stdout.fileno() if pipe is None else pipe]
        streams.append(2 if stderr is None else stderr.fileno())
        input_, output = os.fdopen(our_stdin, "w"), our_stdout and os.fdopen(our_stdout)
        try:
            socket.send_fds(self._control, [b"+"], [*streams, status.fileno()])
            our_status.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            raise RuntimeError(_DEAD) from None
        finally:
            for descriptor in (stdin, pipe):
                if descriptor is not None:
                    os.close(descriptor)
            status.close()
        return Worker(input_, output, our_status)


def _serve(control: socket.socket) -> dict[str, Any]:
    """Returns in each process that it forks, with what that is to run."""
    statuses: dict[int, socket.socket] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: its end of the socket is closed
    signal.set_wakeup_fd(wake)
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    selector.register(ended, selectors.EVENT_READ)
    while True:
        ready = [key.fileobj for key, _ in selector.select()]
        if ended in ready:
            os.read(ended, 512)
            _tell_ends(statuses)
        if control not in ready:
            continue
        _, descriptors, _, _ = socket.recv_fds(control, 1, _STREAMS + 1)
        if not descriptors:
            sys.exit()
        status = socket.socket(fileno=descriptors.pop())
        with warnings.catch_warnings():
            # Python 3.12 warns of threads, which NumPy's BLAS has; they wait, and survive a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for target, descriptor in enumerate(descriptors):
                os.dup2(descriptor, target)
            with status.makefile() as lines:
                request = json.loads(lines.readline())
            for other in (selector, control, status, *statuses.values()):
                other.close()
            descriptors += [ended, wake]
        for descriptor in descriptors:
            os.close(descriptor)
        if pid == 0:
            return request
        statuses[pid] = status
        _tell(status, pid)


def _tell_ends(statuses: dict[int, socket.socket]) -> None:
    while statuses:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with statuses.pop(pid) as asked:
            _tell(asked, os.waitstatus_to_exitcode(status))


def _tell(asked: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # nobody waits for it
        asked.sendall(_NUMBER.pack(number))


def _run(request: Mapping[str, Any]) -> None:
    """Runs it as a fresh process would that has imported torch."""
    import torch

    servers = set(_python_path())
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    option, what, *arguments = request["arguments"]
    first = [] if _has_safe_path() else ["" if option == "-c" else os.getcwd()]
    sys.path[:] = [*first, *_python_path(), *(path for path in sys.path if path not in servers)]
    if torch._is_device_backend_autoload_enabled():
        torch._import_device_backends()
    if option == "-m":
        sys.argv = [what, *arguments]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [option, *arguments]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), main.__dict__)


def _python_path() -> list[str]:
    """As Python has it in `sys.path`."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [os.path.abspath(path) for path in named if path]


def _has_safe_path() -> bool:
    """Whether Python was told to leave a script's folder out of `sys.path`."""
    return bool(getattr(sys.flags, "safe_path", False))


if __name__ == "__main__":
    if not _has_safe_path():
        del sys.path[0]  # this file's folder
    import torch

    torch.testing.assert_close(torch.zeros(1), torch.zeros(1))  # imports more at its first call
    gc.freeze()  # no collection of a worker's, nor its end, has to go over all that is imported
    _run(_serve(socket.socket(fileno=int(sys.argv[1]))))
