"""A progress line for anything that takes more than two seconds."""

from __future__ import annotations

import sys
import time


class ProgressLine:
    """Shows steps, speed and the time left on standard error, once two seconds have passed."""

    def __init__(self, total: int, wanted: bool | None, label: str = "steps") -> None:
        self.total, self.label = total, label
        self.enabled = sys.stderr.isatty() if wanted is None else wanted
        self.began = self.shown = time.perf_counter()
        self.visible = False

    def update(self, done: int) -> None:
        """Say how far we are; drawn at most ten times a second."""
        now = time.perf_counter()
        if not self.enabled or now - self.began < 2.0 or (now - self.shown < 0.1 and done < self.total):
            return
        self.shown, self.visible = now, True
        fraction = done / max(self.total, 1)
        speed = done / (now - self.began)
        left = (self.total - done) / speed if speed else float("inf")
        bar = ("=" * int(30 * fraction)).ljust(30)
        sys.stderr.write(
            f"\r[{bar}] {100 * fraction:5.1f} %  {done:,} of {self.total:,} {self.label}  {speed:,.0f}/s  {left:,.0f} s left   "
        )
        sys.stderr.flush()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the line, if one was drawn."""
        if self.visible:
            sys.stderr.write("\n")
            sys.stderr.flush()
