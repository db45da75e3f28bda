"""How long tests wait for what must come."""

#: For whatever a test waits for: it is reached only when the test fails, so it is long enough for
#: the slowest machine. Limits that must not be reached in a test are longer (`NEVER`).
PATIENCE = 45.0
#: A limit, in seconds, that would fail the test by its patience if anybody waited for it.
NEVER = 600.0
