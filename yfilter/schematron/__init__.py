"""Schematron as profiles: each assertion of a rule set becomes one (docs/schematron.md)."""

from yfilter.schematron.compiler import RefusedRule, RuleProfile, RuleSet, compile_schematron
from yfilter.schematron.errors import SchematronRefused

__all__ = ["RefusedRule", "RuleProfile", "RuleSet", "SchematronRefused", "compile_schematron"]
