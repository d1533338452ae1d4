"""The gateway: a network over HTTP, and pages to look at it."""
