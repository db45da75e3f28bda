"""`python -m acphost` is the `acphost` command."""

import sys

from acphost.cli.main import main

sys.exit(main())
