"""Games walked through whole: the tree, its sequence form, tabular policies, and sampled walks."""

from dream.game_tree.sequence_form import best_response, expected_value, nash_conv
from dream.game_tree.tabular_policy import table_index, table_policy, tabulate
from dream.game_tree.tree import Tree, build_tree

__all__ = [
    "Tree",
    "best_response",
    "build_tree",
    "expected_value",
    "nash_conv",
    "table_index",
    "table_policy",
    "tabulate",
]
