"""The program of a process that runs experiments: a request a line on standard input, a record a line on standard output.

It ends when its standard input does, so that it never outlives the program that started it.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from pathlib import Path

from dalembert import experiments
from dalembert.reproduction._files import load_experiments
from dalembert.reproduction._results import Store, to_record


def main(files: list[str]) -> None:
    """Run what is asked for, and keep its results, until there are no more requests."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what an experiment prints must not come between the replies
    requests: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    for file in files:
        load_experiments(file)
    while True:
        request = json.loads(requests.get())
        store = Store(Path(request["out"]), request["full"])
        result = experiments.run(request["name"], store.full, store.figures, formats=request["formats"], on_failure="return")
        store.keep(result)
        print(json.dumps(to_record(result)), file=replies, flush=True)


def _listen(requests: queue.Queue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
