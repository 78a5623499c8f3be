"""`python -m dalembert.cli`, the same as the command `dalembert`."""

import sys

from dalembert.cli import main

sys.exit(main())
