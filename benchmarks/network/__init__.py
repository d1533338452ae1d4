"""What the benchmark ``network`` is made of: a network of one broker, its users, other services.

All that is measured goes on in real processes: ``onyx up`` with a registration service and one
broker, the users' process, which takes results, and this one, which publishes.  A broker's
processor time is what the system says that its process has used.
"""
