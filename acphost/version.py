"""Which acphost this is. The build reads it from here: asking the installation takes too long."""

VERSION = "0.1.0"
