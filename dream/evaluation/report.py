"""Matches as tables for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from dream.evaluation.statistics import Interval


def report_table(title: str, report: dict[str, Any]) -> None:
    """Prints a match as a table: mean and 95 % interval of each quantity."""
    table = Table(title=title, title_justify="left", caption=f"n = {report['n']} hands, {report['n_pairs']} pairs")
    for column in ("quantity", "mean", "95 % interval"):
        table.add_column(column, justify="left" if column == "quantity" else "right")
    for name, value in report.items():
        if isinstance(value, Interval):
            mean, low, high = (f"{100 * x:.2f} %" if name.endswith("_rate") else f"{x:.2f}" for x in value)
            table.add_row(name.replace("_", " ").removesuffix(" rate"), mean, f"{low} to {high}")
    Console().print(table)
