"""Where the time of a program on device ``lazy`` goes: :class:`torch.lazy.profile`."""

from torch_lazy.profiling.event import Event, Line
from torch_lazy.profiling.profile import profile

__all__ = ["Event", "Line", "profile"]
