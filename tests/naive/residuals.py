"""Twin of the ring of the last errors: the list of all of them."""


def keep_residual(errors, error):
    errors.append(error)


def ring(errors):
    """As the kernel holds them."""
    numbers = [len(errors)] + [0.0] * 500
    for i, error in enumerate(errors):
        numbers[1 + i % 500] = error
    return numbers
