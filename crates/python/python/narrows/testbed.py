"""
The testbed for transports: two ends of any stack over the simulator's network, in virtual time.

    from narrows import testbed

    report = testbed.dumbbell("20mbit", "40ms", "fifo:limit=1bdp", seconds=60).run("aioquic", testbed.aioquic())
    report.flows[0]["goodput_mbit"]
    testbed.judge("cubic/one-bdp", "aioquic", lambda: testbed.aioquic("cubic"))

A peer is an object with the methods of `Peer`. Times are seconds since the start of the run.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from narrows import _narrows
from narrows._results import Result
from narrows._scenario import Scenario, ScenarioLike, scenario

if TYPE_CHECKING:
    from aioquic.quic.connection import QuicConnection

__all__ = ["AioQuic", "Case", "Ends", "Fault", "Network", "Peer", "aioquic", "cases", "dumbbell", "judge", "network"]


class Fault(Exception):
    """A peer did what no network can carry: flooded it, sent a packet that is too long, or asked for the past."""


class Peer(Protocol):
    """One end of a transport."""

    def receive(self, data: bytes, ecn: int, now: float) -> None:
        """A datagram arrives: its UDP payload, and the two ECN bits of its IP header."""

    def transmit(self, now: float) -> bytes | tuple[bytes, int] | None:
        """The next datagram to send, with its ECN bits unless they are 0; called until there is none."""

    def timeout(self) -> float | None:
        """When `on_timeout` is to be called."""

    def on_timeout(self, now: float) -> None:
        """The time of `timeout` has come."""

    def application(self, unwritten: int | None, now: float) -> tuple[int, int]:
        """
        The application's turn.

        Args:
            unwritten: Bytes that it has to send, None for without end.
            now: The time, in seconds.

        Returns:
            How many bytes it wrote into the connection, and how many it read.
        """
        ...


#: Both ends of a connection, the sender of the data first.
Ends = tuple[Peer, Peer]


class Case(NamedTuple):
    """A case of the testbed."""

    #: ``cubic/one-bdp``.
    name: str
    #: What must hold, in a sentence.
    title: str
    #: The RFC's section, or the draft.
    source: str
    #: The controls that it concerns, or ``any``.
    concerns: list[str]


class Network:
    """A scenario whose flow called ``test`` is between the peers. All others are the simulator's own."""

    def __init__(self, source: ScenarioLike) -> None:
        self.scenario: Scenario = scenario(source)

    def run(self, name: str, ends: Ends, *, seed: int | None = None) -> Result:
        """
        Runs it.

        Args:
            name: What results call the stack.
            ends: Both ends, the sender of the data first.
            seed: The seed; the scenario's own if None.

        Raises:
            Fault: A peer did what no network can carry.
            ScenarioError: The scenario is wrong.
        """
        whole = self.scenario if seed is None else self.scenario.with_seed(seed)
        native, fault = _narrows.run_peers(whole._native, name, *ends)
        if fault is not None:
            raise Fault(fault)
        return Result(whole, native)


def network(source: ScenarioLike) -> Network:
    """A network from a scenario: a dict, or the path of a file."""
    return Network(source)


def dumbbell(rate: str, rtt: str, queue: str, *, seconds: float = 60) -> Network:
    """One link of this rate with this queue, and one flow with this base RTT."""
    kind, _, rest = queue.partition(":")
    parameters = dict(pair.split("=", 1) for pair in rest.split(",") if pair)
    return Network(
        {
            "name": "dumbbell",
            "duration": f"{seconds}s",
            "record": {"interval": "100ms"},
            "hop": [{"name": "bottleneck", "rate": rate, "queue": {"kind": kind, **parameters}}],
            "flow": [{"name": "test", "rtt": rtt}],
        }
    )


def cases() -> list[Case]:
    """All cases."""
    return [Case(*row) for row in _narrows.list_cases()]


def judge(case: str, name: str, make: Callable[[], Ends], *, runs: int | None = None) -> dict[str, Any]:
    """
    Judges a transport by a case, beside the case's reference.

    Args:
        case: Its name.
        name: What results call the stack.
        make: Makes both ends, for each run anew.
        runs: Number of runs; the case's own if None.

    Returns:
        The verdicts as ``narrows testbed run --json`` prints them: ``verdict`` is ``holds``, ``fails`` or ``note``.
    """
    return json.loads(_narrows.judge_case(case, name, make, runs))


class AioQuic:
    """A connection of aioquic as a peer. One end sends a stream, the other reads it."""

    #: The application writes in such pieces, bytes; it keeps this much unsent at most.
    PIECE = 1 << 16

    def __init__(self, connection: QuicConnection, *, connects: bool) -> None:
        self.connection = connection
        self._leaving: list[bytes] = []
        self._stream: int | None = None
        self._read = 0
        self._connects = connects
        self._remote = ("10.0.0.2" if connects else "10.0.0.1", 4433)
        self._begun = False

    def receive(self, data: bytes, ecn: int, now: float) -> None:
        self._begun = True
        self.connection.receive_datagram(data, self._remote, now)
        self._events()

    def transmit(self, now: float) -> bytes | None:
        if self._begun and not self._leaving:
            self._leaving = [data for data, _ in reversed(self.connection.datagrams_to_send(now))]
        return self._leaving.pop() if self._leaving else None

    def timeout(self) -> float | None:
        return 0.0 if self._connects else self.connection.get_timer()

    def on_timeout(self, now: float) -> None:
        if self._connects:
            self._connects, self._begun = False, True
            self.connection.connect(self._remote, now)
        else:
            self.connection.handle_timer(now)
        self._events()

    def application(self, unwritten: int | None, now: float) -> tuple[int, int]:
        wrote = 0
        if unwritten != 0 and self.connection._handshake_complete:
            if self._stream is None:
                self._stream = self.connection.get_next_available_stream_id(is_unidirectional=True)
            sender = self.connection._get_or_create_stream_for_send(self._stream).sender
            room = self.PIECE * 64 - (sender._buffer_stop - sender._buffer_start)
            wrote = max(0, room if unwritten is None else min(room, unwritten))
            if wrote > 0:
                self.connection.send_stream_data(self._stream, bytes(wrote))
        read, self._read = self._read, 0
        return wrote, read

    def _events(self) -> None:
        from aioquic.quic.events import StreamDataReceived

        while (event := self.connection.next_event()) is not None:
            if isinstance(event, StreamDataReceived):
                self._read += len(event.data)


def aioquic(control: str = "reno") -> Ends:
    """
    Both ends of a connection of aioquic with its defaults, but for windows of flow control that nothing fills.

    Args:
        control: ``reno``, its default, or ``cubic``.
    """
    import ssl

    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.connection import QuicConnection

    window = 1 << 25
    common = {"congestion_control_algorithm": control, "max_data": window, "max_stream_data": window}
    client = QuicConfiguration(is_client=True, server_name="testbed", verify_mode=ssl.CERT_NONE, **common)
    server = QuicConfiguration(is_client=False, **common)
    certificate, key = _certificate()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "server.pem"
        file.write_bytes(certificate + key)
        server.load_cert_chain(file)
    sender = QuicConnection(configuration=client)
    destination = sender.original_destination_connection_id
    receiver = QuicConnection(configuration=server, original_destination_connection_id=destination)
    return AioQuic(sender, connects=True), AioQuic(receiver, connects=False)


def _certificate() -> tuple[bytes, bytes]:
    """A certificate that the server signs itself, and its key, in PEM."""
    from datetime import datetime, timedelta, timezone

    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519
    from cryptography.x509.oid import NameOID

    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "testbed")])
    now = datetime.now(timezone.utc)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - timedelta(days=1))
    certificate = builder.not_valid_after(now + timedelta(days=365)).sign(key, None)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), private


def _main() -> None:
    """Judges aioquic by every case that concerns its control, and prints the verdicts."""
    import sys

    control = sys.argv[1] if len(sys.argv) > 1 else "reno"
    family = {"reno": "new_reno"}.get(control, control)
    chosen = [case.name for case in cases() if family in case.concerns or "any" in case.concerns]
    verdicts = []
    for name in chosen:
        print(name, file=sys.stderr)
        verdicts.append(judge(name, f"aioquic:{control}", lambda: aioquic(control), runs=1))
    json.dump(verdicts, sys.stdout, indent=2)


if __name__ == "__main__":
    _main()
