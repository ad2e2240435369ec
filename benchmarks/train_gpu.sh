#!/usr/bin/env bash
# Train nano for some minutes on one GPU, samples made by all processor cores; prepared for a lent H200 with 16 of them.
#
#   benchmarks/train_gpu.sh DATA OUT [MINUTES] [TOKENS] [WORKERS]
#
# DATA: a folder as docs/training.md describes (docbank, formula_crops and text together are 67 MB; leave papers out
# until it fits what may travel). OUT gets the weights' folder and the CSVs: a handful of files, 12 MB at most. The
# optimizer's state stays behind: a later run starts from the weights. The last step trains on packed samples for a
# minute, as a checkpoint of the GLM-OCR family is, to see FlexAttention at work. Not yet run on a GPU; on a CPU:
#
#   benchmarks/train_gpu.sh ../shared/data /tmp/out 1 1024 1
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=$1 out=$2 minutes=${3:-10} tokens=${4:-16384} workers=${5:-$(($(nproc) - 1))}
python=${PYTHON:-.venv/bin/python}
weights=$out/nano
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT

mkdir -p "$weights"
cp models/weights/nano/* "$weights"
export OMP_NUM_THREADS=1  # a worker each core
"$python" -c 'import torch; print(torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU")'
"$python" -m gravityocr_models.train.joint --data "$data" --weights "$weights" --state "$state" \
    --minutes "$minutes" --tokens "$tokens" --workers "$workers"
cp "$state"/*.csv "$out"
"$python" -m gravityocr_models.train.validate --data "$data" --weights "$weights" --crops 100 | tee "$out/validation.txt"
"$python" -m gravityocr_models.train.finetune --data "$data" --model "$weights" --out "$state/packed" \
    --minutes 1 --tokens "$tokens" --workers "$workers"
cp "$state/packed.state/metrics.csv" "$out/packed.csv"
