"""Games walked through whole: the tree, its sequence form, tabular policies, and sampled walks."""
