"""Tabular regret minimisers: the CFR family and Monte Carlo CFR."""
