"""The equations, each a pure function with its source; the shaping of rewards has its settings beside it."""

from dream.equations.regret_matching import masked_softmax, regret_matching, soft_regret_matching
from dream.equations.returns import lambda_returns
from dream.equations.sampling import sample_action

__all__ = ["lambda_returns", "masked_softmax", "regret_matching", "sample_action", "soft_regret_matching"]
