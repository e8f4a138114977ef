"""Looking ahead with a policy and its value: beliefs about what is hidden, playouts, sequential halving, a player."""

from dream.search.player import Search, SearchParams, SearchSettings, make_search
from dream.search.thinking import Thinker

__all__ = ["Search", "SearchParams", "SearchSettings", "Thinker", "make_search"]
