"""Queues and controllers of a user's own, written in Python."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from narrows import _narrows
from narrows._errors import ContractError, ScenarioError
from narrows._narrows import Ack, Loss, Packet, Sent

__all__ = ["Ack", "Controller", "Loss", "Packet", "Param", "Queue", "Sent", "check", "register"]

Value = bool | int | float | str


class Param:
    """
    A parameter of a queue or a controller, declared in the body of its class.

    ``limit = nw.Param("100p")`` can be set in scenarios as ``my_queue:limit=50p``. In the object, ``self.limit`` is a
    number: times are s, rates bit/s, sizes bytes.

    Args:
        default: Its kind follows from it: ``True``, ``4``, ``0.5``, ``"5ms"``, ``"20mbit"``, ``"1500B"``, ``"100p"``.
        low: Lowest value, written like the default. If None: zero for plain numbers, the smallest above zero otherwise.
        high: Highest value. If None: an hour, 1 Tbit/s, 1 GB, a million packets, 10**9.
        doc: A sentence about it.
    """

    def __init__(self, default: Value, *, low: Value | None = None, high: Value | None = None, doc: str = "") -> None:
        #: As declared.
        self.declared = (default, low, high, doc)

    if TYPE_CHECKING:
        # In an object it is a number.
        def __get__(self, instance: object, owner: type | None = None) -> Any: ...


class Queue(_narrows.QueueBase):
    """
    A queue discipline. Subclass it, implement ``enqueue`` and ``dequeue``, and ``narrows.register`` it.

    ``__init__`` has no arguments. When it runs, the parameters and these attributes are set: ``rate`` (of the link,
    bit/s; follows its changes, and is 0 while the link is down), ``rtt`` (the largest base RTT of the flows, s),
    ``mtu`` (bytes), ``seed`` (for a generator of random numbers, so that runs are repeatable). ``packets`` and
    ``bytes`` are what waits now.
    """

    #: Its name in scenarios; the class's in small letters if None: ``HeadDrop`` is ``head_drop``.
    name: ClassVar[str | None] = None
    #: Does it serve two flows between the same two hosts in turn, so that neither can take the other's share?
    #: Detectors of fair queuing are judged by it.
    isolates: ClassVar[bool] = False

    def enqueue(self, packet: Packet, now: float) -> None:
        """Takes a packet, at the time ``now`` (s). It may ``drop`` it, or others, and may ``mark`` it."""
        raise NotImplementedError(f"{type(self).__name__} has no enqueue")

    def dequeue(self, now: float) -> Packet | float | None:
        """
        Chooses the packet to send. It is called while packets wait, and may drop and mark, too.

        Returns:
            The packet; a later time (s) if none may leave before; None if it has dropped all.
        """
        raise NotImplementedError(f"{type(self).__name__} has no dequeue")

    def on_timer(self, now: float) -> None:
        """The time of ``set_timer`` has come."""

    def on_rate(self, rate: int, now: float) -> None:
        """The link's rate has changed to ``rate``, bit/s."""

    def gauges(self) -> dict[str, float]:
        """Inner state as named figures, for the series; needs ``record = { gauges = true }``."""
        return {}


class Controller(_narrows.ControllerBase):
    """
    A congestion controller. Subclass it, implement ``on_ack`` and ``on_loss``, and ``narrows.register`` it.

    It decides by setting ``cwnd`` (bytes), ``pacing`` (bit/s, or None), ``burst`` (bytes, when paced) and ``ssthresh``
    (for records). The transport detects and repairs losses. ``__init__`` has no arguments. When it runs, the parameters
    and these attributes are set: ``mss`` and ``initial_window`` (bytes; the first ``cwnd``), ``rtt`` (of the handshake,
    s, or None), ``seed``.
    """

    #: Its name in scenarios; the class's in small letters if None.
    name: ClassVar[str | None] = None
    #: Does it bring down the data in flight after a loss by itself? Otherwise the transport does, by PRR.
    reduces_itself: ClassVar[bool] = False
    #: ``classic`` (told of marks once per round trip), ``counted`` (how many, as DCTCP) or ``scalable`` (L4S).
    marks: ClassVar[str] = "classic"

    def on_ack(self, ack: Ack) -> None:
        """Something was delivered."""
        raise NotImplementedError(f"{type(self).__name__} has no on_ack")

    def on_loss(self, loss: Loss) -> None:
        """A loss, a mark or a timeout; once per recovery episode."""
        raise NotImplementedError(f"{type(self).__name__} has no on_loss")

    def on_sent(self, sent: Sent) -> None:
        """A packet was sent."""

    def on_spurious(self, now: float) -> None:
        """The last loss was none: restore the window."""

    def on_underuse(self, idle: float | None, used: int) -> None:
        """The window has gone unused: nothing was sent for ``idle`` s, or at most ``used`` bytes were in flight."""

    def on_timer(self, now: float) -> None:
        """The time of ``set_timer`` has come."""


Own = TypeVar("Own", bound="type[Queue] | type[Controller]")

#: Methods that are called only if a class has them.
_OPTIONAL = ("on_timer", "on_rate", "gauges", "on_sent", "on_spurious", "on_underuse")


def register(cls: Own) -> Own:
    """
    Makes a class known to scenarios, by its ``name``; also as a decorator.

    Registering a changed class again replaces it for scenarios that are made from then on.

    Args:
        cls: A subclass of ``narrows.Queue`` or ``narrows.Controller``.

    Returns:
        The class.

    Raises:
        ScenarioError: The name or a parameter cannot be written in a scenario.
    """
    _narrows.register(_described(cls))
    return cls


def check(cls: type[Queue] | type[Controller] | str, *, scripts: int = 32) -> None:
    """
    Checks the laws that every queue or controller keeps, on a class that need not be registered.

    Queues: each packet that was offered is delivered, dropped or waiting; packets of a flow stay in order; a limit
    holds; no flow starves. The rate of one link is 0 for ten seconds and then rises again: a queue must not divide by
    ``self.rate`` without a look at it. Controllers: windows grow and shrink only when they may. Both: the same events
    give the same decisions.

    Args:
        cls: The class; or the name of a queue or a controller that is compiled in.
        scripts: The number of random scripts to play, 1 to 1000; always the same ones.

    Raises:
        ContractError: A law is broken; the text names it and shows a short script that breaks it.
        Exception: Whatever the class's own code raises.
    """
    if not 1 <= scripts <= 1000:
        raise ScenarioError("scripts", None, f"{scripts}; allowed: a whole number, 1 to 1000")
    name, law = (
        (cls, _narrows.check_named(cls, scripts))
        if isinstance(cls, str)
        else (getattr(cls, "__name__", ""), _narrows.check(_described(cls), scripts))
    )
    if law is not None:
        raise ContractError(f"{name}: {law}")


def _described(cls: type[Queue] | type[Controller]) -> dict[str, Any]:
    base = next((base for base in (Queue, Controller) if isinstance(cls, type) and issubclass(cls, base)), None)
    if base is None or cls is base:
        raise TypeError(f"{cls!r}; allowed: a subclass of narrows.Queue or narrows.Controller")
    name = cls.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
    if issubclass(cls, Controller) and cls.marks not in ("classic", "counted", "scalable"):
        raise ScenarioError(f"{name}.marks", None, f'"{cls.marks}"; allowed: "classic", "counted", "scalable"')
    declared = {key: value for part in reversed(cls.__mro__) for key, value in vars(part).items()}
    params = [(key, *value.declared) for key, value in declared.items() if isinstance(value, Param)]
    taken = [key for key, *_ in params if hasattr(base, key)]
    if taken:
        raise ScenarioError(
            f"{name}.{taken[0]}", None, f"{base.__name__} has an attribute of this name; allowed: another"
        )
    lines = (cls.__doc__ or "").strip().splitlines() if cls.__doc__ is not base.__doc__ else []
    methods = {method for method in _OPTIONAL if getattr(cls, method, None) is not getattr(base, method, None)}
    constants = [(key, str(getattr(cls, key))) for key in ("isolates", "reduces_itself", "marks") if hasattr(cls, key)]
    return {
        "class": cls,
        "kind": "queue" if base is Queue else "controller",
        "name": name,
        "summary": lines[0] if lines else f"{cls.__name__}, written in Python.",
        "params": params,
        "methods": methods,
        "constants": constants,
    }
