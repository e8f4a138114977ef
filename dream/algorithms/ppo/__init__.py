"""Proximal policy optimisation: settings, loss, whole games or rollouts of fixed length, and the learner."""

from dream.algorithms.ppo.learner import make, make_against, make_regularised
from dream.algorithms.ppo.loss import clipped_loss
from dream.algorithms.ppo.settings import PpoConfig

__all__ = ["PpoConfig", "clipped_loss", "make", "make_against", "make_regularised"]
