"""The page inside of a notebook: an anywidget, whose messages go through the kernel in place of a socket."""

from __future__ import annotations

import functools
from typing import Any

from dalembert.errors import DalembertError
from dalembert.explorer._assets import script, style
from dalembert.explorer._session import Session


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def widget(session: Session) -> Any:
    """A widget that shows the page."""
    return _widget_class()(session)


@functools.cache
def _widget_class() -> type:
    try:
        import anywidget
    except ImportError:
        raise DalembertError("in a notebook, the page needs a few more packages: pip install 'dalembert[explore]'") from None

    class Explorer(anywidget.AnyWidget):
        """The page of `da.explore`."""

        _esm = script()
        _css = style()

        def __init__(self, session: Session) -> None:
            super().__init__()
            self._session = session
            self.on_msg(self._asked)

        def _asked(self, _: Any, ask: Any, buffers: Any) -> None:
            del buffers
            self.send(self._session.answer(ask))

    return Explorer
