"""Tuples between the processes of a run, over pipes: start-up uses no call that a filter may trap."""

from __future__ import annotations

import os
import select
import time

from flowproof.record import wire

__all__ = ["Channel", "Receiver", "send"]


class Receiver:
    """The reading end of a pipe of `wire` frames."""

    def __init__(self, file: int) -> None:
        self.file = file
        self.ended = False
        self._rest = b""
        self._ready: list[tuple[object, ...]] = []

    def receive(self, deadline: float) -> tuple[object, ...] | None:
        """Return the next tuple; None at the end of the stream or past *deadline* (monotonic)."""
        while not self._ready:
            left = deadline - time.monotonic()
            if self.ended or left <= 0 or not self.wait(left):
                return None
            self.read()
        return self._ready.pop(0)

    def wait(self, seconds: float) -> bool:
        """Return whether there is something to read, or the end, within *seconds*."""
        poller = select.poll()
        poller.register(self.file, select.POLLIN)
        return bool(poller.poll(max(int(seconds * 1000), 1)))

    def read(self) -> None:
        """Take in what is there; sets `ended` at the end of the stream."""
        data = os.read(self.file, 1 << 20)
        self.ended = not data
        found, self._rest = wire.unpack(self._rest + data)
        self._ready += found

    def take(self) -> list[tuple[object, ...]]:
        """Return the tuples that were read."""
        found, self._ready = self._ready, []
        return found

    @property
    def torn(self) -> bool:
        """Whether the stream ended in the middle of a frame."""
        return self.ended and bool(self._rest)

    def close(self) -> None:
        """Close the reading end."""
        os.close(self.file)


class Channel:
    """A pipe of `wire` frames, both ends close-on-exec; `reader` and `writer` keep one end each."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def reader(self) -> Receiver:
        """Keep the reading end, close the other."""
        os.close(self._write)
        return Receiver(self._read)

    def writer(self) -> int:
        """Keep the writing end, close the other."""
        os.close(self._read)
        return self._write

    @property
    def ends(self) -> tuple[int, int]:
        """The descriptors of both ends."""
        return self._read, self._write


def send(file: int, *fields: object) -> None:
    """Write one tuple."""
    data = memoryview(wire.pack([fields]))
    while data:
        data = data[os.write(file, data) :]
