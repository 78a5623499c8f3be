"""Films as files of pixels: GIF by Pillow, MP4 by ffmpeg."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from dalembert.draw._paint import frame_axes, paint
from dalembert.draw._scene import Scene
from dalembert.draw._style import new_figure, styled
from dalembert.errors import DalembertError

WIDTH, DPI = 480, 100


def frames(scene: Scene, report: Callable[[int], None]) -> Iterator[np.ndarray]:
    """The pixels of each frame, (height, width, 4), with even numbers of rows and columns."""
    width, height = scene.extent
    aspect = float(np.clip(height / width, 0.5, 1.3))
    rows = 2 * round(WIDTH * aspect / 2)
    with styled():
        figure = new_figure(WIDTH / DPI, rows / DPI)
        figure.set_layout_engine("none")
        figure.set_dpi(DPI)
        ax, clock = figure.add_axes((0.0, 0.0, 1.0, 1.0)), figure.text(0.02, 0.97, "", va="top", color="#505050")
        for i, t in enumerate(scene.t):
            for artist in [*ax.lines, *ax.patches]:  # much cheaper than axes of their own for every frame
                artist.remove()
            frame_axes(ax, scene, i, rows / WIDTH)
            paint(ax, scene, i)
            clock.set_text(f"t = {t:.2f}")
            figure.canvas.draw()
            report(i + 1)
            yield np.array(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]


def write_film(scene: Scene, fps: float, path: Path, report: Callable[[int], None]) -> None:
    """Write a film as .gif or .mp4; `report` is told the number of frames drawn so far."""
    (write_gif if path.suffix.lower() == ".gif" else write_mp4)(scene, fps, path, report)


def write_gif(scene: Scene, fps: float, path: Path, report: Callable[[int], None]) -> None:
    """An endless GIF. The format counts hundredths of a second: single frames are rounded so that the whole is not."""
    from PIL import Image

    images = [Image.fromarray(pixels).convert("RGB") for pixels in frames(scene, report)]
    colors = images[-1].quantize(64)  # one palette, so that what stands still is stored once
    pictures = [image.quantize(palette=colors, dither=Image.Dither.NONE) for image in images]
    ends = np.round(100 * np.arange(len(pictures) + 1) / fps)
    lengths = [10 * int(length) for length in np.maximum(np.diff(ends), 1)]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=lengths, loop=0, disposal=1)


def ffmpeg() -> str:
    """Where ffmpeg is."""
    found = shutil.which("ffmpeg")
    if found is None:
        raise DalembertError(
            "an .mp4 film needs the program ffmpeg, which is not installed: install it, or write .gif or .html"
        )
    return found


def write_mp4(scene: Scene, fps: float, path: Path, report: Callable[[int], None]) -> None:
    """An H.264 film, as browsers and slides show it."""
    pictures = frames(scene, report)
    first = next(pictures)
    size = f"{first.shape[1]}x{first.shape[0]}"
    command = [
        ffmpeg(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgba", "-s", size, "-r", f"{fps:g}", "-i", "-",
        "-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart", str(path),
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        try:
            process.stdin.write(first.tobytes())
            for pixels in pictures:
                process.stdin.write(pixels.tobytes())
            process.stdin.close()
        except BrokenPipeError:
            pass  # ffmpeg gave up: its message follows
        message = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise DalembertError(f"ffmpeg could not write {path.name}: {message.splitlines()[-1] if message else 'no message'}")
