"""Twins of the draws of coordinates."""

from tests.naive.semi_stochastic import draw_row


def draw_blocks(state, count, chosen):
    drawn = []
    for _ in chosen:
        state, number = draw_row(state, count)
        drawn.append(number)
    return drawn


def draw_subsets(state, pool, chosen):
    drawn = []
    for _ in chosen:
        for k in range(len(chosen[0])):
            state, number = draw_row(state, len(pool) - k)
            pool[k], pool[k + number] = pool[k + number], pool[k]
        drawn.append(list(pool[: len(chosen[0])]))
    return drawn
