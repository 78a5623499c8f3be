"""The page on a local address: Starlette and uvicorn, for this machine and for those who know the token."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dalembert.compiler._jit import cache_directory
from dalembert.errors import DalembertError
from dalembert.explorer._assets import script, style, template
from dalembert.explorer._session import Session

HOST, PORT = "127.0.0.1", 8765
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Address:
    """Where the page is, and the word that opens it."""

    port: int
    token: str

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def admits(self, token: str | None) -> bool:
        """Whether a request knows the token."""
        return token is not None and hmac.compare_digest(token.encode(), self.token.encode())

    def is_own(self, origin: str | None) -> bool:
        """Whether a request comes from this page, and not from one of another site."""
        return origin in (f"http://{HOST}:{self.port}", f"http://localhost:{self.port}")


def application(new_session: Callable[[], Session], address: Address) -> Any:
    """The page, its script and style, and the socket through which it asks."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket, WebSocketDisconnect

    one_at_a_time = threading.Lock()  # drivers and programs are shared by all sessions

    def reply(session: Session, ask: Any) -> dict[str, Any]:
        with one_at_a_time:
            return session.answer(ask if isinstance(ask, dict) else {})

    def page(request: Request) -> Response:
        if not address.admits(request.query_params.get("token")):
            return PlainTextResponse("This page needs the token that dalembert explore has printed.\n", 403, HEADERS)
        return Response(template(), media_type="text/html", headers=HEADERS)

    def script_file(request: Request) -> Response:
        return Response(script(), media_type="text/javascript", headers=HEADERS)

    def style_file(request: Request) -> Response:
        return Response(style(), media_type="text/css", headers=HEADERS)

    async def asks(socket: WebSocket) -> None:
        if not address.is_own(socket.headers.get("origin")) or not address.admits(socket.query_params.get("token")):
            await socket.close(1008)  # before it is accepted: the answer is 403
            return
        await socket.accept()
        session = new_session()
        with contextlib.suppress(WebSocketDisconnect):
            while True:
                ask = await socket.receive_json()
                await socket.send_json(await in_background(functools.partial(reply, session, ask)))

    routes = [
        Route("/", page), Route("/explore.js", script_file), Route("/explore.css", style_file), WebSocketRoute("/ask", asks)
    ]  # fmt: skip
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])  # no names that others point at this machine
    return Starlette(routes=routes, middleware=[hosts])


async def in_background(task: Callable[[], Any]) -> Any:
    """What a task returns, by a thread for which nobody waits after Ctrl-C: a model may take minutes to compile."""
    loop = asyncio.get_running_loop()
    found = loop.create_future()

    def tell(method: Callable[[Any], None], what: Any) -> None:
        if not found.done():  # it is cancelled when the server ends
            method(what)

    def work() -> None:
        try:
            said = (found.set_result, task())
        except BaseException as error:
            said = (found.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, *said)

    threading.Thread(target=work, daemon=True, name="dalembert-session").start()
    return await found


def own_token() -> str:
    """A token of this user, the same for later servers, so that pages which are open find them again."""
    directory = cache_directory()
    if directory is None:
        return secrets.token_urlsafe(24)
    path = directory.parent / "explore-token"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (
            contextlib.suppress(FileExistsError),
            open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file,
        ):
            file.write(secrets.token_urlsafe(24))
        about = path.lstat()
        kept = path.read_text().strip()
        if about.st_uid == os.getuid() and not about.st_mode & 0o077 and not path.is_symlink() and len(kept) >= 32:
            return kept
    except (OSError, AttributeError):
        pass
    return secrets.token_urlsafe(24)


def bound(port: int | None) -> socket.socket:
    """A socket on this machine alone: at the port that was asked for, else at the usual one, else at any."""
    for candidate in (PORT, 0) if port is None else (port,):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, candidate))
            listener.listen()  # so that a browser that is quicker than the server waits
        except (OSError, OverflowError):
            listener.close()
            continue
        return listener
    raise DalembertError(f"port {port} of this machine is taken or not allowed: choose another one, or none")


class Server:
    """A running page; `with Server(...) as server` ends it again.

    Example:
        >>> import urllib.request, dalembert as da
        >>> from dalembert.explorer._subject import Subject
        >>> subject = Subject("pendulum", da.problems.pendulum())
        >>> with Server(lambda: Session(subject), port=0) as server:
        ...     urllib.request.urlopen(server.address.url).status
        200

    """

    def __init__(self, new_session: Callable[[], Session], port: int | None = None, token: str | None = None) -> None:
        try:
            import uvicorn
        except ImportError:
            raise DalembertError("the page needs a few more packages: pip install 'dalembert[explore]'") from None
        self._listener = bound(port)
        self.address = Address(self._listener.getsockname()[1], token or own_token())
        application_ = application(new_session, self.address)
        config = uvicorn.Config(application_, log_level="critical", ws="websockets-sansio", lifespan="off",
                                timeout_graceful_shutdown=1)  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until Ctrl-C."""
        with contextlib.suppress(KeyboardInterrupt), self._open():
            self._server.run([self._listener])

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._listener.close()

    def __enter__(self) -> Server:
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        assert self._thread is not None
        self._thread.join(10)
        self._listener.close()
