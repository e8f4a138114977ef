"""The equations: one pure function each, with its source."""

from dream.equations.regret_matching import masked_softmax, regret_matching, soft_regret_matching
from dream.equations.returns import lambda_returns
from dream.equations.sampling import sample_action

__all__ = ["lambda_returns", "masked_softmax", "regret_matching", "sample_action", "soft_regret_matching"]
