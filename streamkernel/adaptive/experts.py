"""The experts' matrices: three least squares heads that drift at different rates, two linear experts, their mixture."""

import numpy as np

from streamkernel.compute.experts import hedge_weights, pass_labels, pass_numbers
from streamkernel.state import Array, Record, array

#: lambda of the two softmax-Newton experts, and q of the two linear least squares experts.
FORGETTING = (1.0, 0.99)
LINEAR_DRIFTS = (0.0, 1e-3)


class Experts:
    """Heads on all columns and linear experts on the last ones, with K outputs.

    Parameters
    ----------
    ridge
        rho.
    drift_rates
        q of each head.

    Attributes
    ----------
    heads_P, heads_W
        float64 of shape (H, D, D), lower triangles, and (H, K, D).
    linear_P, linear_W
        float64 of shape (E, L, L) and (E, K, L).
    losses
        Discounted losses, heads first, float64 of shape (H + E,).

    """

    n_linear_experts = 2
    #: The mixture's rate.
    eta: float

    def __init__(self, ridge: float, drift_rates: tuple[float, ...]) -> None:
        self.ridge = ridge
        self.drifts = np.array(drift_rates, np.float64)
        self.begin(0, None, 0)

    def begin(self, n_columns: int, n_linear: int | None, n_outputs: int) -> None:
        """Begin with nothing learnt; None linear columns, now or later, is no linear experts."""
        H = len(self.drifts)
        E = 0 if n_linear is None else self.n_linear_experts
        L = (n_linear or 0) + 1
        self.heads_P = self._fresh(H, n_columns)
        self.heads_W = np.zeros((H, n_outputs, n_columns))
        self.linear_P = self._fresh(E, L)
        self.linear_W = np.zeros((E, n_outputs, L))
        self.losses = np.zeros(H + E)

    def forget_heads(self) -> None:
        """The heads begin anew; linear experts and mixture go on."""
        H, D, _ = self.heads_P.shape
        self.heads_P = self._fresh(H, D)
        self.heads_W[:] = 0.0

    def rescale_inputs(self, factor: float) -> None:
        """The inputs' columns become `factor` <= 1 times what they were, under linear experts that go on.

        Their coefficients grow by 1 / factor, so that they say what they said. So does P where the ridge leaves it
        room: any diagonal congruence keeps it positive.
        """
        self.linear_W[:, :, 1:] /= factor
        diagonal = np.einsum("eii->ei", self.linear_P)
        growth = np.clip(1 / np.sqrt(self.ridge * diagonal), 1.0, 1 / factor)
        growth[:, 0] = 1.0  # the constant
        self.linear_P *= growth[:, :, None] * growth[:, None, :]

    def add_column(self) -> None:
        """One more input became a column: nothing is known of it."""
        self.heads_P, self.linear_P = (self._bordered(P) for P in (self.heads_P, self.linear_P))
        self.heads_W, self.linear_W = (
            np.ascontiguousarray(np.pad(W, ((0, 0), (0, 0), (0, 1)))) for W in (self.heads_W, self.linear_W)
        )

    def add_output(self) -> None:
        """One more class: its scores are 0."""
        self.heads_W, self.linear_W = (
            np.ascontiguousarray(np.pad(W, ((0, 0), (0, 1), (0, 0)))) for W in (self.heads_W, self.linear_W)
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices."""
        return sum(int(getattr(self, name).nbytes) for name in self._fields)

    @property
    def weights(self) -> dict[str, float]:
        """Each expert's weight in the mixture, by name."""
        names = [f"head, drift {q:g}" for q in self.drifts] + [f"linear {e}" for e in range(len(self.linear_W))]
        weights = np.empty(len(names))
        hedge_weights(self.losses, self.eta, weights)
        return dict(zip(names, weights.tolist(), strict=True))

    def record(self) -> Record:
        """The fields of the state."""
        return {name: getattr(self, name).copy() for name in self._fields}

    def restore(self, record: Record, n_columns: int, n_linear: int | None, n_outputs: int) -> None:
        """Take the fields that `record` gave; ValueError where they do not fit."""
        self.begin(n_columns, n_linear, n_outputs)
        for name in self._fields:
            setattr(self, name, array(record, name, np.float64, *getattr(self, name).shape))

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("heads_P", "heads_W", "linear_P", "linear_W", "losses")

    def _fresh(self, n: int, size: int) -> Array:
        return np.tile(np.eye(size) / self.ridge, (n, 1, 1))

    def _bordered(self, P: Array) -> Array:
        n, size, _ = P.shape
        larger = np.zeros((n, size + 1, size + 1))
        larger[:, :size, :size] = P
        larger[:, size, size] = 1 / self.ridge
        return larger


class LabelExperts(Experts):
    """Experts for classes: least squares scores become probabilities by a temperature each."""

    eta = 1.0

    def begin(self, n_columns: int, n_linear: int | None, n_outputs: int) -> None:
        super().begin(n_columns, n_linear, n_outputs)
        self.log_temperatures = np.full(len(self.drifts), np.log(4.0))

    @property
    def _fields(self) -> tuple[str, ...]:
        return (*super()._fields, "log_temperatures")

    def learn(self, Phi: Array, labels: Array, weights: Array, only_heads: bool = False) -> Array:
        """Predict, then learn; label -1 is predicted only. Returns probabilities (n, K)."""
        out = np.empty((len(Phi), self.heads_W.shape[1]))
        pass_labels(
            Phi,
            labels,
            weights,
            self.heads_P,
            self.heads_W,
            self.drifts,
            self.ridge,
            self.linear_P,
            self.linear_W,
            np.array(FORGETTING),
            self.log_temperatures,
            self.losses,
            self.eta,
            only_heads,
            out,
        )
        return out


class NumberExperts(Experts):
    """Experts for numbers: targets are standardised by the moments of those learnt."""

    eta = 2.0

    def begin(self, n_columns: int, n_linear: int | None, n_outputs: int) -> None:
        super().begin(n_columns, n_linear, n_outputs)
        self.moments = np.zeros(3)
        self.linear_moments = np.zeros(3)
        self.squared_errors = np.zeros(2)

    def forget_heads(self) -> None:
        super().forget_heads()
        self.moments[:] = 0.0

    @property
    def _fields(self) -> tuple[str, ...]:
        return (*super()._fields, "moments", "linear_moments", "squared_errors")

    def learn(self, Phi: Array, targets: Array, weights: Array, only_heads: bool = False) -> Array:
        """Predict, then learn; NaN is predicted only. Returns predictions, deviations, variances (n, 3)."""
        out = np.empty((len(Phi), 3))
        pass_numbers(
            Phi,
            targets,
            weights,
            self.heads_P,
            self.heads_W,
            self.drifts,
            self.ridge,
            self.linear_P,
            self.linear_W,
            np.array(LINEAR_DRIFTS),
            self.moments,
            self.linear_moments,
            self.losses,
            self.squared_errors,
            self.eta,
            only_heads,
            out,
        )
        return out
