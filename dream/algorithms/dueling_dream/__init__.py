"""The dueling DREAM agent: settings, one iteration's games, targets and loss, and the learner."""

from dream.algorithms.dueling_dream.learner import make
from dream.algorithms.dueling_dream.parts import ActorOutput
from dream.algorithms.dueling_dream.settings import DuelingDreamConfig

__all__ = ["ActorOutput", "DuelingDreamConfig", "make"]
