"""Who is who in a network: its authority, what that issues, and where clients find it."""
