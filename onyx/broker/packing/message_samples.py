"""MessageSamples: which messages of one source are kept, in one form, to train a dictionary on.

::

    sampling ── enough messages or bytes ──> training ──> pausing for so many messages ──┐
       ^──────────────────────────────────────────────────────────────────────────────────┘

Messages that come one after the other are taken, from the first on: a source is served early, and
what it says now is what the next dictionary is for.  Lost at a restart: sampling begins anew.
"""

from __future__ import annotations

from overlay.limits import TrainingLimits


class MessageSamples:
    """Samples of one source in one form, within the limits."""

    __slots__ = ("_bytes", "_samples", "limits", "pause")

    def __init__(self, limits: TrainingLimits) -> None:
        self.limits = limits
        self._samples: list[bytes] = []
        self._bytes = 0
        self.pause = 0  # messages to let pass; whoever does so counts

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, form: bytes) -> bool:
        """A message; True when there are enough to train on."""
        if len(form) <= self.limits.sample_bytes_max:
            self._samples.append(form)
            self._bytes += len(form)
        return (
            len(self._samples) >= self.limits.samples
            or self._bytes >= self.limits.samples_bytes_max
        )

    def take(self) -> list[bytes]:
        """All samples, which are kept no longer; the pause begins."""
        samples, self._samples = self._samples, []
        self._bytes = 0
        self.pause = self.limits.retrain_messages
        return samples
