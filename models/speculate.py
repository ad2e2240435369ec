"""Decoding: the plain oracle, and one loop of windows that drafts and verifies a batch.

Every round is one forward over a window a sequence, `[x0, d_1..d_a | MASK x m]`: x0 is the last committed token, d the
candidates. The clean rows are causal, so row i says what follows d_i; candidates are committed as long as they are what
the model itself chooses, then its own next token. The mask rows see the clean rows and each other and predict a further
block. What a round holds makes the ways of decoding:

    PLAIN        no candidates, no mask rows
    TWO_FORWARD  mask rows only in rounds without candidates: one forward drafts, the next verifies
    FUSED        both in every forward; the first block rides in the prefill
    READING      candidates are the encoder's own reading (reading.py), mask rows only where it has none

The ids are the same for all of them, for any candidates, block size and batch (tests/models/test_speculate.py).
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import eq

import torch
from torch import Tensor

from gravityocr_models.drafters import follow, own_predictions, recur, until_end
from gravityocr_models.ocr import OcrModel
from gravityocr_models.reading import Reading, with_hints
from gravityocr_models.records import Rounds
from gravityocr_models.rounds import NO_HINT, Outcome, Runner, Work

REFILL_BELOW = 0.75  # share of slots in use below which waiting sequences enter: a prefill for each would be narrow
BLOCKS = (3, 4, 6, 8, 12, 16, 24)  # that an adaptive one is chosen from, with none and the most
LEAST_BLOCK = BLOCKS[0]
PROBE_EVERY = 16  # rounds
WORTH_A_PROBE = 1.25  # speed-up that the best of drafts must promise before one looks again

Drafter = Callable[[Sequence[int]], list[int]]


@dataclass(frozen=True)
class Prompt:
    """What a sequence starts from.

    embeds [n, hidden] and positions int64 [3, n]: image tokens and prompt. limit: most tokens to commit, end token
    included. layer: candidate ids from elsewhere, here the text layer; may be wrong. reading: the encoder's, of nano
    alone; part of what the model chooses by. sure: whether more looks at the crop would not tell more. ask: candidates
    of every round, in tests: oracles and adversaries.
    """

    embeds: Tensor
    positions: Tensor
    limit: int
    layer: tuple[int, ...] = ()
    reading: Reading | None = None
    sure: bool = True
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

    A forward costs as much as `free_rows` rows and its own; a candidate is accepted with the probability seen so far.
    The block is the one that commits most a cost. Where that is none, decoding goes on plainly and looks again now and
    then, if the best of drafts could pay at all. The block never changes an answer, only the number and the width of
    the forwards.
    """

    def __init__(self, rules: Rules, free_rows: float) -> None:
        self._rules = rules
        self._free_rows = free_rows
        self._right = 0.9
        self._rounds = 0

    def rules(self, load: int) -> Rules:
        """The rules of the next round, of so many sequences."""
        if not self._rules.adaptive or self._rules.rounds is Rounds.PLAIN:
            return self._rules
        block = self._best(load, self._right)
        if block == 0 and self._rounds % PROBE_EVERY < 2:  # one round drafts, the next verifies
            gain = self._rate(load, 1.0, self._best(load, 1.0)) / self._rate(load, 1.0, 0)
            block = LEAST_BLOCK if gain > WORTH_A_PROBE else 0
        return replace(self._rules, block=block)

    def note(self, drafted: Sequence[int], accepted: Sequence[int]) -> None:
        """After every round: the candidates of each sequence, and how many were accepted."""
        self._rounds += 1
        judged = sum(right + (right < asked) for asked, right in zip(drafted, accepted, strict=True))
        if judged:
            self._right += (sum(accepted) / judged - self._right) / 2

    def _best(self, load: int, right: float) -> int:
        blocks = {0, self._rules.block, *(block for block in BLOCKS if block < self._rules.block)}
        return max(sorted(blocks), key=lambda block: self._rate(load, right, block))

    def _rate(self, load: int, right: float, block: int) -> float:
        """Tokens that a sequence commits in a round, for what the round costs."""
        committed: float = (1 - right ** (block + 1)) / (1 - right) if right < 1 else 1 + block
        masked = self._rules.mask_id is not None and self._rules.rounds is not Rounds.READING
        rows = 1 + (2 if masked else 1) * block
        return committed / (self._free_rows + load * rows)


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
        self.prompt_end = int(self.prompt.positions[:, -1].max())

    @property
    def done(self) -> bool:
        return self.ended or len(self.ids) >= self.prompt.limit

    @property
    def next_position(self) -> int:
        """Rotary position, on all three axes, of x0, the last committed token."""
        return self.prompt_end + len(self.ids)

    @property
    def cached(self) -> int:
        """Slots of the cache that hold it: all but x0."""
        return len(self.prompt.embeds) + len(self.ids) - 1


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
        hint = prompt.reading.hints(ids, [])[0] if prompt.reading else NO_HINT
        logits = with_hints(model.logits(hidden[0, -1]), torch.tensor(hint, device=model.device))
        ids.append(int(logits.argmax()))
    return ids


@torch.inference_mode()
def decode(
    model: OcrModel, prompts: Sequence[Prompt], rules: Rules, slots: int = 32, runner: Runner | None = None
) -> list[Answer]:
    """Answers in the order of the prompts. At most `slots` sequences run at once; who ends makes room for the next.

    runner: of this model, to be used again from call to call.
    """
    runner = runner or Runner(model)
    answers = [Answer(prompt) for prompt in prompts]
    waiting = deque(answers)
    live: list[Answer] = []
    pace = Pace(rules, runner.free_rows)
    while waiting or live:
        if waiting and len(live) <= slots * REFILL_BELOW:
            entering = _next(waiting, slots - len(live), runner.prefill_rows)
            _round(runner, entering, pace, first=len(live), prefill=True)
            live += entering
        else:
            _round(runner, live, pace, first=0, prefill=False)
        _leave(runner, live)
    return answers


def _leave(runner: Runner, live: list[Answer]) -> None:
    """Sequences that are done go; the last one takes the place of each, so that the live ones stay neighbours."""
    for row in reversed(range(len(live))):
        if live[row].done:
            last = live.pop()
            if row < len(live):
                live[row] = last
                runner.cache.move(len(live), row, last.cached)


def _next(waiting: deque[Answer], room: int, rows: int) -> list[Answer]:
    """The sequences to enter together: as many as there is room for, and as a prefill of so many rows allows."""
    entering = [waiting.popleft()]
    longest = len(entering[0].prompt.embeds) + len(entering[0].prompt.layer)
    while waiting and len(entering) < room:
        longest = max(longest, len(waiting[0].prompt.embeds) + len(waiting[0].prompt.layer))
        if longest * (len(entering) + 1) > rows:
            break
        entering.append(waiting.popleft())
    return entering


@torch.inference_mode()
def agreements(model: OcrModel, prompts: Sequence[Prompt]) -> list[int]:
    """How many tokens of each prompt's layer are the model's own choice, given the pixels and the layer before them.

    Where the encoder reads a crop its reading is that choice: the bonus leaves the decoder no say.
    """
    decoded = decoder_choices(model, [prompt for prompt in prompts if not prompt.reading])
    chosen = (prompt.reading.hints((), prompt.layer) if prompt.reading else next(decoded) for prompt in prompts)
    return [sum(map(eq, prompt.layer, ids)) for prompt, ids in zip(prompts, chosen, strict=True)]


def decoder_choices(model: OcrModel, prompts: Sequence[Prompt]) -> Iterator[Sequence[int]]:
    """The decoder's choice after each token of each layer: one causal forward, or a few for many prompts."""
    waiting, runner = deque(Answer(prompt, draft=list(prompt.layer)) for prompt in prompts), Runner(model)
    while waiting:
        judged = _next(waiting, len(waiting), runner.prefill_rows)
        yield from (outcome.choices for outcome in runner.prefill(0, [_work(answer) for answer in judged]))


def _round(runner: Runner, live: Sequence[Answer], pace: Pace, first: int, prefill: bool) -> None:
    """One forward: verify every sequence's candidates, commit, and draft the next."""
    rules = pace.rules(len(live))
    for answer in live:
        if prefill:
            answer.draft = _candidates(answer, [], rules)
        elif not answer.prompt.layer:
            answer.draft = answer.draft[: rules.block]  # the block may have shrunk since they were drafted
    work = [_work(answer, [rules.mask_id or 0] * rules.masks(len(answer.draft))) for answer in live]
    outcomes = runner.prefill(first, work) if prefill else runner.round(work)
    pace.note([len(answer.draft) for answer in live], [outcome.accepted for outcome in outcomes])
    for answer, outcome in zip(live, outcomes, strict=True):
        _commit(answer, outcome, rules)


def _work(answer: Answer, masks: Sequence[int] = ()) -> Work:
    """The sequence's part of a forward: what it begins or goes on with, its candidates, mask tokens."""
    ids, prompt = [*answer.ids[-1:], *answer.draft, *masks], answer.prompt
    hints = prompt.reading.hints(answer.ids, answer.draft, len(masks)) if prompt.reading else ()
    if answer.ids:
        return Work(ids, len(masks), answer.next_position, answer.cached, hints=hints)
    return Work(ids, len(masks), answer.next_position + 1, prompt=(prompt.embeds, prompt.positions), hints=hints)


def _commit(answer: Answer, outcome: Outcome, rules: Rules) -> None:
    """Take what a round has proved into the answer, and set the candidates of the next."""
    accepted, chosen = outcome.accepted, outcome.choices
    fresh = until_end([*answer.draft[:accepted], chosen[accepted]], rules.ends)
    fresh = fresh[: answer.prompt.limit - len(answer.ids)]
    predicted = len(answer.draft) + rules.masks(len(answer.draft)) - accepted
    drafting = rules.rounds is Rounds.FUSED or rules.masks(len(answer.draft)) > 0
    answer.ids += fresh
    answer.committed.append(len(fresh))
    answer.probability += sum(outcome.certainties[: len(fresh)])
    answer.ended = answer.ids[-1] in rules.ends
    if not answer.done:
        own = own_predictions(chosen, accepted, min(predicted, rules.block)) if drafting else []
        answer.draft = _candidates(answer, own, rules)


def _candidates(answer: Answer, own: list[int], rules: Rules) -> list[int]:
    """The next round's candidates: what follows in the layer or the reading, else the model's own."""
    if rules.rounds is Rounds.PLAIN:
        return []
    layer = answer.prompt.layer
    layered = follow(layer, answer.ids, len(layer)) if answer.ids else list(layer)
    if answer.prompt.ask is not None:
        own = answer.prompt.ask(answer.ids)
    elif layered:
        own = layered
    elif answer.prompt.reading and rules.rounds is Rounds.READING:
        own = answer.prompt.reading.draft(answer.ids)
    elif answer.ids and rules.mask_id is None:
        own = recur(answer.ids, rules.block)
    return until_end(own[: max(0, answer.prompt.limit - len(answer.ids) - 1)], rules.ends)
