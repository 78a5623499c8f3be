"""`python -m dalembert` is the command `dalembert`."""

import sys

from dalembert.cli import main

if __name__ == "__main__":
    sys.exit(main())
