"""What the encoder and the decoder are both made of."""

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

EXACT = (torch.float32, torch.float64)


class RMSNorm(nn.Module):
    """Root-mean-square norm over the last dimension."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cpu" or torch.is_grad_enabled() or x.dtype not in EXACT:
            return F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # half the passes over memory, half the calls
        scale = torch.addcmul(_constant(self.eps, x.dtype), norm, norm, value=1 / x.shape[-1]).rsqrt_()
        return (scale * self.weight).mul_(x)


@cache
def _constant(value: float, dtype: torch.dtype) -> Tensor:
    return torch.tensor(value, dtype=dtype)


def frequencies(theta: float, dim: int, device: torch.device) -> Tensor:
    """Rotary frequencies of `dim` / 2 pairs. Not a buffer: `model.to(bfloat16)` must leave them in float32."""
    return theta ** -(torch.arange(0, dim, 2, dtype=torch.float32, device=device) / dim)
