"""Twins of the elastic net's steps."""

import math


def soft_threshold(v, by):
    return math.copysign(max(abs(v) - by, 0.0), v)


def elastic_net_step(v, step, l2, l1):
    return soft_threshold(v / step, l1) / (1 / step + l2)


def elastic_net_conjugate(s, l2, l1):
    x = soft_threshold(s, l1) / l2
    return s * x - l2 / 2 * x * x - l1 * abs(x)
