"""Trials: inputs that are wrong, damaged or hostile, in numbers; experiments/trials.py runs them at length."""
