#!/bin/sh
# Correctness and speed of decoding on one GPU (H200), in under 8 minutes: sh benchmarks/gpu.sh [FOLDER OF DOCUMENTS]
# Needs .venv, as `make setup` makes it, with a CUDA build of PyTorch. Without trained weights of the full size, `random`
# decodes nonsense at the true speed, with drafts whose accept lengths an oracle sets.
set -eu
cd "$(dirname "$0")/.."
BIN=.venv/bin
$BIN/python -c 'import torch; assert torch.cuda.is_available(), "no GPU"; print(torch.cuda.get_device_name())'
timeout 120 $BIN/pytest -q -m gpu tests/models/test_graphs.py
timeout 90 $BIN/python benchmarks/acceptance.py --device cuda --crops 64 --batches 1 32
timeout 180 $BIN/python benchmarks/acceptance.py --device cuda --model random --crops 64 --tokens 96 --batches 1 32
timeout 90 $BIN/gravityocr bench "${1:-examples}" --batch 1 --batch 32 --limit 64
