"""How much speculative decoding gains for drafts of a given quality.

    python benchmarks/acceptance.py [--model nano|random] [--crops N] [--tokens N] [--device DEVICE]

nano's own drafts are as good as its training so far. Here each candidate is instead the right one with a given
probability (an oracle made of plain decoding's own answers), and costs what it would cost: its row, and a mask row for
the next. "free drafts" come from elsewhere, such as a text layer or the encoder, and need no mask rows. `random` is a
model of GLM-OCR's full size with random weights, which answers nonsense at the true speed.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from gravityocr_models.config import OcrConfig, TextConfig, VisionConfig
from gravityocr_models.engine import Engine
from gravityocr_models.ocr import OcrModel, image_positions
from gravityocr_models.records import Rounds
from gravityocr_models.rounds import Runner
from gravityocr_models.speculate import Prompt, Rules, decode

GLM_OCR = OcrConfig(
    VisionConfig(depth=24, hidden_size=1024, num_heads=16, intermediate_size=4096, out_hidden_size=1536),
    TextConfig(59392, 1536, 4608, 16, 16, 8, 128, (16, 24, 24)),
    59280,
    59256,
    59257,
)
MASK_ID, BLOCK = 59282, 32
RATES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 1.0)


def random_model(device: torch.device, dtype: torch.dtype) -> OcrModel:
    """GLM-OCR's size; weights small enough that activations stay finite."""
    torch.manual_seed(0)
    with torch.device("meta"):
        model = OcrModel(GLM_OCR)
    model.to_empty(device=device).to(dtype).eval().requires_grad_(False)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.02) if parameter.ndim > 1 else torch.nn.init.ones_(parameter)
    return model.lay_out()


def prompts_for(model: OcrModel, count: int, tokens: int, rows: int, columns: int) -> list[Prompt]:
    """Image tokens of noise: what stands there does not change what it costs."""
    torch.manual_seed(1)
    after = max(rows, columns)
    places = torch.arange(after, after + 8).expand(3, -1)
    positions = torch.cat([image_positions(rows, columns, 0), places], dim=1).to(model.device)
    size = positions.shape[1], model.config.text.hidden_size
    return [Prompt(torch.randn(size, device=model.device, dtype=model.dtype), positions, tokens) for _ in range(count)]


def oracle(truth: Sequence[int], rate: float, seed: int, wrong: int) -> Callable[[Sequence[int]], list[int]]:
    """Candidates that are right with probability `rate`, independently, and otherwise the token `wrong`."""
    chance = random.Random(seed)
    return lambda ids: [token if chance.random() < rate else wrong for token in truth[len(ids) : len(ids) + BLOCK]]


def measure(
    runner: Runner, prompts: Sequence[Prompt], rules: Rules, batch: int
) -> tuple[float, list[list[int]], float]:
    """Processor seconds (on a GPU: on the clock), ids, tokens a forward."""
    clock = time.perf_counter if runner.model.device.type == "cuda" else time.process_time
    decode(runner.model, prompts, rules, batch, runner)  # records graphs, and the block that the pace settles on
    started = clock()
    answers = decode(runner.model, prompts, rules, batch, runner)
    seconds = clock() - started
    tokens = sum(len(answer.ids) for answer in answers)
    return seconds, [answer.ids for answer in answers], tokens / sum(len(answer.committed) for answer in answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=("nano", "random"), default="nano")
    parser.add_argument("--crops", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    engine = Engine.load(device=options.device)
    model = engine.checkpoint.model
    if options.model == "random":
        model = random_model(model.device, model.dtype)
    mask_id = MASK_ID if options.model == "random" else engine.rules(Rounds.FUSED).mask_id
    grid = (8, 32) if options.model == "random" else (2, 64)
    print(f"{options.model}, {engine.describe()}, {options.crops} crops of {grid[0] * grid[1]} image tokens")
    print(f"{'batch':>6}{'right':>7}{'own drafts':>12}{'a forward':>11}{'same':>7}{'free drafts':>13}{'a forward':>11}")
    for batch in options.batches:
        plain = prompts_for(model, options.crops if batch > 1 else max(2, options.crops // 8), options.tokens, *grid)
        runner = Runner(model)
        base = Rules(frozenset(), mask_id, BLOCK, Rounds.PLAIN)
        seconds, truths, _ = measure(runner, plain, base, batch)
        for rate in RATES:
            pairs = list(zip(plain, truths, strict=True))
            asked = [replace(p, ask=oracle(ids, rate, n, mask_id or 0)) for n, (p, ids) in enumerate(pairs)]
            fused = replace(base, rounds=Rounds.FUSED, adaptive=True)
            own, ids, own_rate = measure(runner, asked, fused, batch)
            free, _, free_rate = measure(runner, asked, replace(fused, mask_id=None), batch)
            same = sum(mine == theirs for mine, theirs in zip(ids, truths, strict=True))
            with_masks = f"{seconds / own:11.2f}x{own_rate:11.2f}{same:4}/{len(plain):<2}"
            without = f"{seconds / free:12.2f}x{free_rate:11.2f}"
            print(f"{batch:6}{rate:7.2f}{with_masks}{without}", flush=True)


if __name__ == "__main__":
    main()
