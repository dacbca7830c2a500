"""Twin of streamkernel/compute/mixture_parts.py: the shapes of the parts."""


def parts_of(C, T, L, n_blocks, room):
    return {
        "coefficients": (C, 5, room),
        "gains": (T, room),
        "linear": (C, 1 + L),
        "squares": (C, 1 + L),
        "window": (room // 256, 16, 256),
        "gram": (T, 16, 16),
        "targets": (16, T),
        "weights": (16,),
        "fitted": (3, 16, C),
        "moves": (2, 4, C),
        "losses": (T, 6),
        "beta": (n_blocks, C),
        "checks": (2,),
        "phi": (1 + T, 4, room),
    }
