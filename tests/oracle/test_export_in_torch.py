"""An export read by PyTorch alone: the ten lines that rebuild the network give the same outputs."""

from __future__ import annotations

import pathlib
import pickle

import numpy as np
import pytest
from simba_reference import random_weights, simba_forward

import dream

torch = pytest.importorskip("torch")

TEN_LINES = """
import torch, safetensors.torch
p = safetensors.torch.load_file("simba.safetensors")
dense = lambda name, x: x @ p[f"{name}.kernel"] + p[f"{name}.bias"]
norm = lambda name, x: torch.nn.functional.layer_norm(x, x.shape[-1:], p[f"{name}.scale"], p[f"{name}.bias"])
def outputs(x):
    x = torch.relu(dense("Dense_0", x))
    x = x + dense("Dense_2", torch.relu(dense("Dense_1", norm("LayerNorm_0", x))))
    x = x + dense("Dense_4", torch.relu(dense("Dense_3", norm("LayerNorm_1", x))))
    x = norm("LayerNorm_2", x)
    return {name: dense(name, x) for name in ("Dense_5", "value_draw", "value_discard", "value_knock", "opp_dw_pred")}
"""
"""As the README has them; Dense_5 gives the logits."""


def test_ten_lines_of_pytorch(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits, values and auxiliary prediction, on random weights, equal NumPy's and this project's within 1e-4."""
    monkeypatch.chdir(tmp_path)
    weights = random_weights(np.random.default_rng(1))
    observations = np.random.default_rng(2).random((5, 342), np.float32)
    (tmp_path / "simba.pkl").write_bytes(pickle.dumps({"params": weights}))
    dream.export_policy(tmp_path / "simba.pkl", "simba.safetensors")
    assert len(TEN_LINES.strip().splitlines()) == 10
    scope: dict = {}
    exec(TEN_LINES, scope)
    reported = scope["outputs"](torch.from_numpy(observations))
    expected = simba_forward(weights, observations)
    ours = dream.load_policy("simba.safetensors").outputs(observations)
    for name, x in expected.items():
        torchs = reported["Dense_5"] if name == "logits" else reported[name][:, 0]
        np.testing.assert_allclose(torchs.numpy(), x, atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(torchs.numpy(), ours[name], atol=1e-4, rtol=1e-4)
