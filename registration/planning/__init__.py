"""Partitioning of the profile population by exclusiveness patterns (PEP, section 4.4).

Everything here is pure: profiles and counts in, a plan out.  What grows with the population is
done by ``registration.spark`` or, for small ones, in memory.
"""
