"""The clock of a Matcher that stands alone: a broker's is given messages that have a time."""

from time import time as system_time

__all__ = ["system_time"]
