# The compiler takes result_plan.py as it is.
