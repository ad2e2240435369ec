"""Where candidate tokens come from. A draft is only ever a guess: what is not the AR choice is not committed."""

from collections.abc import Sequence

MATCH = 3  # committed tokens that must recur in a source before it is followed


def own_predictions(choices: Sequence[int], accepted: int, most: int) -> list[int]:
    """The model's own predictions behind the token it just corrected or added.

    choices: argmax of every row of the last window, from the first row that predicts a new token. Behind a rejected
    candidate these are predictions from a prefix that holds one wrong token, a better guess than the old draft; behind
    a wholly accepted draft they are the mask rows, the next block.
    """
    return list(choices[accepted + 1 : accepted + 1 + most])


def follow(source: Sequence[int], committed: Sequence[int], most: int) -> list[int]:
    """What comes next in `source`, where the last committed tokens occur there; empty where they don't.

    Of several occurrences the one nearest to the place already reached counts.
    """
    tail = list(committed[-MATCH:])
    ends = [end for end in range(len(tail), len(source)) if list(source[end - len(tail) : end]) == tail]
    if not tail or not ends:
        return []
    nearest = min(ends, key=lambda end: abs(end - len(committed)))
    return list(source[nearest : nearest + most])


def recur(committed: Sequence[int], most: int) -> list[int]:
    """What followed the last committed tokens when they last occurred (n-gram lookup); what repeats goes on repeating.

    For checkpoints that can't draft.
    """
    tail = list(committed[-MATCH:])
    ends = [end for end in range(len(tail), len(committed)) if list(committed[end - len(tail) : end]) == tail]
    if not ends:
        return []
    tokens = list(committed)
    for place in range(ends[-1], ends[-1] + most):
        tokens.append(tokens[place])
    return tokens[len(committed) :]


def until_end(draft: Sequence[int], ends: frozenset[int]) -> list[int]:
    """The draft up to and with its first end token: nothing after it can be committed."""
    for place, token in enumerate(draft):
        if token in ends:
            return list(draft[: place + 1])
    return list(draft)
