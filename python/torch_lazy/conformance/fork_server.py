"""Starts workers from a process that has imported torch already. To import it takes seconds of a
processor, and the kit starts a worker for each section and another wherever one died.

This file is the server's script as well, which is run by its path: it imports nothing of
torch_lazy. It imports torch without the devices that packages bring, so that no driver is loaded
where it forks; a worker loads them before anything else, as `import torch` would have done. What a
library reads of the environment when it is loaded is the server's, all else the worker's own.

The server has one thread of Python's. It ends with the process that started it.
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
from collections.abc import Mapping, Sequence
from typing import IO, Any

_AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_STREAMS = 3  # standard input, output and error
_NUMBER = struct.Struct("i")  # what the server tells of a process: its number, then how it ended


class Worker:
    """A process of a :class:`ForkServer`, to be used as a `subprocess.Popen` of text."""

    def __init__(self, stdin: IO[str], stdout: IO[str] | None, status: socket.socket):
        self.stdin, self.stdout = stdin, stdout
        self._status = status
        self.pid = self._told()

    def _told(self) -> int:
        number = self._status.recv(_NUMBER.size, socket.MSG_WAITALL)
        if len(number) < _NUMBER.size:
            raise RuntimeError("the process that starts workers has died")
        return _NUMBER.unpack(number)[0]

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, or the number of the signal that ended it, negative; raises TimeoutError
        after so many seconds."""
        self._status.settimeout(timeout)
        code = self._told()
        for stream in (self.stdin, self.stdout, self._status):
            if stream is not None:
                stream.close()
        return code


class ForkServer:
    """Runs within a `with` statement. Threads may share it."""

    _control: socket.socket
    _process: subprocess.Popen

    def __enter__(self) -> ForkServer:
        self._control, servers_end = socket.socketpair()
        inherited = servers_end.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", __file__, str(inherited)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[inherited],
            env={**os.environ, _AUTOLOAD: "0"},
        )
        servers_end.close()
        return self

    def __exit__(self, *error: object) -> None:
        self._control.close()
        self._process.wait()

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stderr: IO[str],
        stdout: IO[str] | None = None,
    ) -> Worker:
        """Does what `python ARGUMENTS` does, which have to begin with `-m MODULE` or `-c CODE`; the
        standard input is a pipe, and so is the output without `stdout`."""
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
        streams = [stdin, stdout.fileno() if pipe is None else pipe, stderr.fileno()]
        socket.send_fds(self._control, [b"+"], [*streams, status.fileno()])
        for descriptor in (stdin, pipe):
            if descriptor is not None:
                os.close(descriptor)
        status.close()
        our_status.sendall(json.dumps(request).encode() + b"\n")
        output = None if our_stdout is None else os.fdopen(our_stdout)
        return Worker(os.fdopen(our_stdin, "w"), output, our_status)


def _serve(control: socket.socket) -> dict[str, Any]:
    """Returns in each process that it forks, with what that is to run."""
    statuses: dict[int, socket.socket] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks for workers ends them
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

    servers = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    own = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    installed = [path for path in sys.path if path not in servers]
    if torch._is_device_backend_autoload_enabled():
        sys.path[:] = [*filter(None, own), *installed]
        torch._import_device_backends()
    option, what, *arguments = request["arguments"]
    sys.path[:] = ["" if option == "-c" else os.getcwd(), *filter(None, own), *installed]
    if option == "-m":
        sys.argv = [what, *arguments]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [option, *arguments]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    del sys.path[0]  # this file's folder
    import torch

    torch.testing.assert_close(torch.zeros(1), torch.zeros(1))  # imports more at its first call
    gc.freeze()  # no collection of a worker's, nor its end, has to go over all that is imported
    _run(_serve(socket.socket(fileno=int(sys.argv[1]))))
