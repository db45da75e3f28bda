"""Written by tools/protocol.py: which state of the socket's schema this program speaks."""

#: Clients may log it; it changes with every change of a method, a member or a word.
SCHEMA_REVISION = "1-f2ff6fd2e917"
