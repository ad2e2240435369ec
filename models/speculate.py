"""Decoding: the plain oracle, and one loop of windows that drafts and verifies a batch.

Every round is one forward over a window a sequence, `[x0, d_1..d_a | MASK x m]`: x0 is the last committed token, d the
candidates. The clean rows are causal, so row i says what follows d_i; candidates are committed as long as they are what
the model itself chooses, then its own next token. The mask rows see the clean rows and each other and predict a further
block. What a round holds makes the three ways of decoding:

    PLAIN        no candidates, no mask rows
    TWO_FORWARD  mask rows only in rounds without candidates: one forward drafts, the next verifies
    FUSED        both in every forward; the first block rides in the prefill

The ids are the same for all three, for any candidates, block size and batch (tests/models/test_speculate.py).
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gravityocr_models.attention import window_mask
from gravityocr_models.cache import KVCache
from gravityocr_models.drafters import follow, own_predictions, recur, until_end
from gravityocr_models.ocr import OcrModel
from gravityocr_models.records import Rounds

CACHE_STEP = 256  # slots that the cache grows by
PREFILL_ROWS = 4_096  # most rows of one prefill: bounds its memory
REFILL_BELOW = 0.75  # share of slots in use below which waiting sequences enter: a prefill for each would be narrow
LEAST_BLOCK = 3
PROBE_EVERY = 16  # rounds
HEADROOM = 2.0  # mask rows for each candidate that is expected to be accepted

Drafter = Callable[[Sequence[int]], list[int]]


@dataclass(frozen=True)
class Prompt:
    """What a sequence starts from.

    embeds [n, hidden] and positions int64 [3, n]: image tokens and prompt. limit: most tokens to commit, end token
    included. layer: candidate ids from elsewhere, here the text layer; may be wrong. ask: overrides the candidates of
    every round (tests inject oracles and adversaries): committed ids -> candidates.
    """

    embeds: Tensor
    positions: Tensor
    limit: int
    layer: tuple[int, ...] = ()
    ask: Drafter | None = None


@dataclass(frozen=True)
class Rules:
    """What holds for a whole batch. ends: ids that end an answer. mask_id is None where the model can't draft.

    block: mask rows in a window, and most candidates in one unless the layer gives more. adaptive: take `block` for the
    most, and less where few candidates are accepted.
    """

    ends: frozenset[int]
    mask_id: int | None
    block: int
    rounds: Rounds = Rounds.FUSED
    adaptive: bool = False

    def masks(self, candidates: int) -> int:
        """Mask rows behind so many candidates."""
        if self.mask_id is None or self.rounds is Rounds.PLAIN or candidates > self.block:
            return 0
        return self.block if self.rounds is Rounds.FUSED or candidates == 0 else 0


class Pace:
    """How far to draft. Rows that are not accepted cost time, so an adaptive block follows what has been accepted.

    Where next to nothing is, decoding goes on plainly and looks again now and then. The block never changes an answer,
    only the number and the width of the forwards.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._expected = float(rules.block)
        self._rounds = 0

    @property
    def rules(self) -> Rules:
        """The rules of the next round."""
        if not self._rules.adaptive:
            return self._rules
        block = round(HEADROOM * self._expected)
        if block < LEAST_BLOCK:  # a probe takes two rounds: one drafts, the next verifies
            block = LEAST_BLOCK if self._rounds % PROBE_EVERY < 2 else 0
        return replace(self._rules, block=min(self._rules.block, block))

    def note(self, accepted: Sequence[int]) -> None:
        """After every round: the candidates accepted, of each sequence that had any."""
        self._rounds += 1
        if accepted:
            self._expected += (sum(accepted) / len(accepted) - self._expected) / 2


@dataclass
class Answer:
    """A sequence in decoding, then its result. Fields as in records.Decoded; ids hold the end token if there is one."""

    prompt: Prompt
    ids: list[int] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)
    probability: float = 0.0
    ended: bool = False
    draft: list[int] = field(default_factory=list)
    prompt_end: int = field(init=False)

    def __post_init__(self) -> None:
        self.prompt_end = int(self.prompt.positions.max())

    @property
    def done(self) -> bool:
        return self.ended or len(self.ids) >= self.prompt.limit

    @property
    def next_position(self) -> int:
        """Rotary position, on all three axes, of x0, the last committed token."""
        return self.prompt_end + len(self.ids)


def accept(drafts: Tensor, lengths: Tensor, choices: Tensor) -> Tensor:
    """How many candidates of each sequence are the model's own choices, up to the first that is not: int64 [B].

    drafts int64 [B, A], padded; lengths int64 [B]; choices int64 [B, >= A]: row i is what follows candidate i - 1.
    """
    places = torch.arange(drafts.shape[1], device=drafts.device)
    equal = (drafts == choices[:, : drafts.shape[1]]) & (places < lengths[:, None])
    return equal.cumprod(dim=1).sum(dim=1)


@torch.inference_mode()
def decode_plain(model: OcrModel, prompt: Prompt, ends: frozenset[int]) -> list[int]:
    """The oracle: one token a forward over the whole sequence, no cache, no batch."""
    ids: list[int] = []
    first = int(prompt.positions.max()) + 1
    while len(ids) < prompt.limit and not (ids and ids[-1] in ends):
        places = torch.arange(first, first + len(ids), device=model.device).expand(3, -1)
        embeds = torch.cat([prompt.embeds, model.embed(torch.tensor(ids, dtype=torch.int64, device=model.device))])
        positions = torch.cat([prompt.positions, places], dim=1)
        seen = torch.ones(len(embeds), len(embeds), dtype=torch.bool, device=model.device).tril()
        hidden = model.decode(embeds[None], positions[:, None], seen[None, None])
        ids.append(int(model.logits(hidden[0, -1]).argmax()))
    return ids


@torch.inference_mode()
def decode(model: OcrModel, prompts: Sequence[Prompt], rules: Rules, slots: int = 32) -> list[Answer]:
    """Answers in the order of the prompts. At most `slots` sequences run at once; who ends makes room for the next."""
    answers = [Answer(prompt) for prompt in prompts]
    waiting = deque(answers)
    live: list[Answer] = []
    cache = KVCache(model.config.text, 0, CACHE_STEP, model.device, model.dtype)
    pace = Pace(rules)
    while waiting or live:
        if waiting and len(live) <= slots * REFILL_BELOW:
            entering = _next(waiting, slots - len(live))
            fresh = KVCache(model.config.text, len(entering), CACHE_STEP, model.device, model.dtype)
            _round(model, fresh, entering, pace, prefill=True)
            cache.join(fresh)
            live += entering
        else:
            _round(model, cache, live, pace, prefill=False)
        going = [row for row, answer in enumerate(live) if not answer.done]
        if len(going) < len(live):
            live = [live[row] for row in going]
            cache.keep(torch.tensor(going, dtype=torch.int64, device=model.device))
    return answers


def _next(waiting: deque[Answer], room: int) -> list[Answer]:
    """The sequences to enter together: as many as there is room for, and as a prefill of bounded size allows."""
    entering = [waiting.popleft()]
    longest = len(entering[0].prompt.embeds) + len(entering[0].prompt.layer)
    while waiting and len(entering) < room:
        longest = max(longest, len(waiting[0].prompt.embeds) + len(waiting[0].prompt.layer))
        if longest * (len(entering) + 1) > PREFILL_ROWS:
            break
        entering.append(waiting.popleft())
    return entering


@torch.inference_mode()
def agreements(model: OcrModel, prompts: Sequence[Prompt]) -> list[int]:
    """How many tokens of each prompt's layer are the model's own choice, given the pixels and the layer before them.

    One causal forward over prompts and layers, or a few where there are many.
    """
    rules = Rules(frozenset(), None, 1, Rounds.PLAIN)
    waiting = deque(Answer(prompt, draft=list(prompt.layer)) for prompt in prompts)
    counts = []
    while waiting:
        judged = _next(waiting, len(waiting))
        cache = KVCache(model.config.text, len(judged), CACHE_STEP, model.device, model.dtype)
        for answer, (_, chosen, _) in zip(judged, _forward(model, cache, judged, rules, prefill=True), strict=True):
            counts.append(sum(token == choice for token, choice in zip(answer.draft, chosen, strict=False)))
    return counts


def _round(model: OcrModel, cache: KVCache, live: Sequence[Answer], pace: Pace, prefill: bool) -> None:
    """One forward: verify every sequence's candidates, commit, and draft the next."""
    rules = pace.rules
    for answer in live:
        if prefill:
            answer.draft = _candidates(answer, list(answer.prompt.layer), rules)
        elif not answer.prompt.layer:
            answer.draft = answer.draft[: rules.block]  # the block may have shrunk since they were drafted
    outcome = _forward(model, cache, live, rules, prefill)
    pace.note([accepted for answer, (accepted, _, _) in zip(live, outcome, strict=True) if answer.draft])
    for answer, (accepted, chosen, sure) in zip(live, outcome, strict=True):
        _commit(answer, accepted, chosen, sure, rules)


def _forward(
    model: OcrModel, cache: KVCache, live: Sequence[Answer], rules: Rules, prefill: bool
) -> list[tuple[int, list[int], list[float]]]:
    """One forward over every sequence's window: candidates accepted, and each row's choice with its probability.

    Row 0 is x0, or the last token of the prompt. The cache then holds x0 and the accepted candidates.
    """
    device = model.device
    heads = torch.tensor([len(a.prompt.embeds) if prefill else 1 for a in live], device=device)
    drafted = torch.tensor([len(a.draft) for a in live], device=device)
    masked = torch.tensor([rules.masks(len(a.draft)) for a in live], device=device)
    width = int((heads + drafted + masked).max())
    slots = int(cache.lengths.max()) + width
    cache.reserve(-(-slots // CACHE_STEP) * CACHE_STEP)

    embeds, positions = _window(model, live, rules, width, prefill)
    mask = window_mask(cache.lengths, heads + drafted, masked, width, slots)
    hidden = model.decode(embeds, positions, mask, cache)

    count = int((1 + drafted + masked).max())
    rows = (heads - 1)[:, None] + torch.arange(count, device=device)
    batch = torch.arange(len(live), device=device)[:, None]
    logits = model.logits(hidden[batch, rows.clamp(max=width - 1)]).float()
    best, choices = logits.max(dim=-1)
    certainty = (best - logits.logsumexp(dim=-1)).exp()

    most = int(drafted.max())
    drafts = torch.tensor([a.draft + [0] * (most - len(a.draft)) for a in live], dtype=torch.int64, device=device)
    accepted = accept(drafts, drafted, choices)
    cache.lengths = cache.lengths + heads + accepted
    return list(zip(accepted.tolist(), choices.tolist(), certainty.tolist(), strict=True))


def _window(model: OcrModel, live: Sequence[Answer], rules: Rules, width: int, prefill: bool) -> tuple[Tensor, Tensor]:
    """Embeddings [B, width, hidden] and positions [3, B, width] of a round's rows."""
    rows = []
    for answer in live:
        clean = ([0] * len(answer.prompt.embeds) if prefill else [answer.ids[-1]]) + answer.draft
        clean += [rules.mask_id or 0] * rules.masks(len(answer.draft))
        rows.append(clean + [0] * (width - len(clean)))
    embeds = model.embed(torch.tensor(rows, device=model.device))
    starts = torch.tensor([a.next_position for a in live], device=model.device)
    positions = (starts[:, None] + torch.arange(width, device=model.device)).expand(3, -1, -1)
    if prefill:
        positions = positions.clone()
        for row, answer in enumerate(live):
            count = len(answer.prompt.embeds)
            embeds[row, :count] = answer.prompt.embeds
            positions[:, row] -= count - 1  # what follows the prompt stands one behind its last position
            positions[:, row, :count] = answer.prompt.positions
    return embeds, positions


def _commit(answer: Answer, accepted: int, chosen: Sequence[int], sure: Sequence[float], rules: Rules) -> None:
    """Take what a round has proved into the answer, and set the candidates of the next."""
    fresh = until_end([*answer.draft[:accepted], chosen[accepted]], rules.ends)
    fresh = fresh[: answer.prompt.limit - len(answer.ids)]
    predicted = len(answer.draft) + rules.masks(len(answer.draft)) - accepted
    drafting = rules.rounds is Rounds.FUSED or rules.masks(len(answer.draft)) > 0
    answer.ids += fresh
    answer.committed.append(len(fresh))
    answer.probability += sum(sure[: len(fresh)])
    answer.ended = answer.ids[-1] in rules.ends
    own = own_predictions(chosen, accepted, min(predicted, rules.block)) if drafting else []
    answer.draft = _candidates(answer, own, rules)


def _candidates(answer: Answer, own: list[int], rules: Rules) -> list[int]:
    """The next round's candidates: what follows in the layer, else the model's own predictions."""
    if rules.rounds is Rounds.PLAIN:
        return []
    if answer.prompt.ask is not None:
        own = answer.prompt.ask(answer.ids)
    elif answer.ids:
        layered = follow(answer.prompt.layer, answer.ids, len(answer.prompt.layer))
        own = layered or (recur(answer.ids, rules.block) if rules.mask_id is None else own)
    return until_end(own[: max(0, answer.prompt.limit - len(answer.ids) - 1)], rules.ends)
