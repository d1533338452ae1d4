"""Schematron as profiles: each assertion of a rule set becomes one (docs/schematron.md)."""

from yfilter.errors import SchematronRefused
from yfilter.schematron.compiler import RefusedRule, RuleProfile, RuleSet, compile_schematron

__all__ = ["RefusedRule", "RuleProfile", "RuleSet", "SchematronRefused", "compile_schematron"]
