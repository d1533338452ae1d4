"""What graphs cost as messages: reading them, and what is measured beside it, in units of P."""
