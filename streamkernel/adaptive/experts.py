"""The experts: least squares heads of different drift, two linear experts, trees, neighbors, and their mixture."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamkernel.adaptive.change import Change
from streamkernel.adaptive.forest import TreeEnsembles
from streamkernel.adaptive.heads import LeastSquaresHeads
from streamkernel.adaptive.memory import Memory
from streamkernel.compute.experts import Linear, Mixture, Stacking, hedge_weights
from streamkernel.compute.features import BLOCK, FeatureMap, Scaling, arrive
from streamkernel.fields import Rules, all_finite, array, checked
from streamkernel.state import Array, State


class Arrivals(NamedTuple):
    """Records as they came to a core, which predicts, then learns them: of one segment, in which no shape changes."""

    values: Array  #: As `arrive` has them; one that is learned with weight 0 counts for the moments only
    extras: Array
    learned: Array
    truths: Array  #: Targets as the pass has them, shape (n,); any where a record is not learned
    weights: Array  #: float64 of shape (n,)
    past: Array  #: What is known of earlier targets, (n, G)
    scaling: Scaling  #: As `arrive` has them
    feature_map: FeatureMap


def advance_records(
    learn: Callable[..., None], records: Arrivals, experts: tuple[Any, ...], out: Array, nothing: float
) -> None:
    """Let records arrive, then predict and learn them, a block at a time.

    - learn: `pass_labels` or `pass_numbers`.
    - records: Their moments are updated.
    - experts: What comes between weights and `past` among the parameters of `learn`; updated.
    - out: Filled with the predictions.
    - nothing: The truth of a record that is predicted only.
    """
    values, extras, learned, truths, weights, past, scaling, feature_map = records
    n = len(values)
    to_learn = np.where(weights > 0, truths, nothing).astype(truths.dtype, copy=False)
    X = np.empty((min(n, BLOCK), len(feature_map.W)), feature_map.W.dtype)
    Phi = np.empty((len(X), 2 * feature_map.W.shape[1] + 1 + feature_map.n_linear))
    for start in range(0, n, BLOCK):
        block = slice(start, start + BLOCK)
        scaled, columns = X[: n - start], Phi[: n - start]
        arrive(values[block], extras[block], learned[block], scaling, feature_map, scaled, columns)
        given = columns, scaled, values[block], to_learn[block], weights[block]
        learn(*given, *experts, past[block], out[block])


#: How much more than the others' an expert's loss is that begins after them.
_BEGINS_LATE = 10.0


class Shares(NamedTuple):
    """The last mixture's weights: of all experts mixed, of the past if that is next to them, of the stacks by name."""

    mixed: float
    past: float
    stacks: dict[str, float]


class Experts(abc.ABC):
    """Heads on all columns, linear experts on the last ones, trees on the inputs, and neighbors, with K outputs.

    - ridge: rho.
    - drift_rates: q of each head.
    - n_trees, window: Trees of an ensemble, 0 for none, and the records they are grown on.
    - memory: The last records, fresh.
    - n_past: 1 if an expert, or a machine next to these, knows the past of the target, else 0: the last of all.
    - heads: The heads.
    - linear_P, linear_W: float64 of shape (E, L, L) and (E, K, L).
    - forest: The trees.
    - memory: The last records, whose neighbors are experts.
    - change: Watches the mixture's losses.
    - stack_P, stack_W: As `compute.stacking.Stacking` has them, of all experts.
    - losses: Discounted losses: heads, linear experts, then those that trees and memory bring; then of the last
      mixture: all these mixed, what knows the past where that is none of them, and the stacks; float64.
    - prior: Each expert's weight where all losses are alike, in those of a head, float64.
    """

    n_linear_experts = 2
    #: Scales of a target that each head learns.
    n_scales = 1
    #: The experts that a memory brings.
    memory_experts: tuple[str, ...]
    #: Each one's weight where all losses are alike, in those of a head.
    memory_prior: float
    #: What the heads know of targets: attributes that are arrays, zeros at first.
    target_statistics: tuple[str, ...] = ()
    #: Ensembles of trees, if there are any.
    n_ensembles: int
    #: lambda of the linear experts, or q of those for numbers.
    linear_rates: Array
    #: The compiled pass. Of the class: an instance that held it would be as large as the compiler.
    run: Callable[..., None]
    #: The target of a record that is predicted only.
    nothing: float
    #: The mixture's rate.
    eta: float
    #: q of each stack, and the ridge of all.
    stack_drifts: Array
    stack_ridge: float
    #: Numbers of a prediction: None is one for each output.
    width: int | None = None
    #: What outlasts other sizes of the parts.
    _lasting: tuple[str, ...]

    def __init__(
        self,
        ridge: float,
        drift_rates: tuple[float, ...],
        n_trees: int,
        window: int,
        memory: Memory,
        n_past: int = 0,
    ) -> None:
        self.n_past = n_past
        self.ridge = ridge
        self.heads = LeastSquaresHeads(ridge, drift_rates)
        self.forest = TreeEnsembles(self.n_ensembles, n_trees, window)
        self.memory = memory
        self.begin(0, None, 0, 0)

    def begin(self, n_columns: int, n_linear: int | None, n_outputs: int, n_inputs: int) -> None:
        """Begin with nothing learned; None linear columns, now or later, is no linear experts."""
        E = 0 if n_linear is None else self.n_linear_experts
        L = (n_linear or 0) + 1
        self.heads.begin(n_columns, n_outputs * self.n_scales)
        self.linear_P = np.tile(np.eye(L) / self.ridge, (E, 1, 1))
        self.linear_W = np.zeros((E, n_outputs, L))
        self.forest.begin(n_inputs, n_outputs)
        self.memory.begin(n_inputs)
        others = self.other_names
        H = len(self.heads.drifts)
        n_asinh = (self.n_scales - 1) * H
        n, S = H + E + n_asinh + len(others), len(self.stack_drifts)
        self.stack_P = np.tile(np.eye(n + self.n_beside) / self.stack_ridge, (S, 1, 1))
        self.stack_W = np.zeros((S, 1, n + self.n_beside))
        self.losses = np.zeros(n + 1 + self.n_beside + S)
        asked = [self.memory_prior if name in self.memory_experts else 1.0 for name in others]
        # Of heads on another scale, and of neighbors for numbers, most are much alike: some together count as one.
        prior = [1.0] * (H + E) + [1 / H] * n_asinh + asked
        self.prior = np.array(prior + [1.0] * (len(self.losses) - n))
        self.change = Change()

    @property
    @abc.abstractmethod
    def other_names(self) -> list[str]:
        """The experts that come after the linear ones."""

    @property
    @abc.abstractmethod
    def n_beside(self) -> int:
        """1 where what knows the past of the target is none of the experts here but mixed next to them, else 0."""

    @property
    def n_outputs(self) -> int:
        """K."""
        return int(self.heads.W.shape[1]) // self.n_scales

    @property
    def memory_names(self) -> list[str]:
        """The experts that the memory brings."""
        return list(self.memory_experts) if self.memory.size else []

    @property
    def slowest_head(self) -> Array:
        """The coefficients of the head that drifts least, (K, D): what a metric is learned from."""
        return np.asarray(self.heads.W[int(np.argmin(self.heads.drifts))])

    def fresh_heads(self) -> dict[str, Any]:
        """Heads that know nothing, and what they know of targets, by attribute."""
        fresh = LeastSquaresHeads(self.ridge, tuple(self.heads.drifts))
        _, K, D = self.heads.W.shape
        fresh.begin(D, K)
        return {"heads": fresh, **{name: np.zeros_like(getattr(self, name)) for name in self.target_statistics}}

    def exchange_heads(self, parts: dict[str, Any]) -> dict[str, Any]:
        """Replace the heads by others from `fresh_heads` and return the old ones. Linear experts and mixture stay."""
        before = {name: getattr(self, name) for name in parts}
        for name, part in parts.items():
            setattr(self, name, part)
        return before

    def rescale_inputs(self, factor: float) -> None:
        """Adapt the linear experts to inputs' columns that become `factor` <= 1 times as large.

        Their coefficients grow by 1 / factor, so that their scores stay. So does P where the ridge leaves it
        room: any diagonal congruence keeps it positive.
        """
        self.linear_W[:, :, 1:] /= factor
        diagonal = np.einsum("eii->ei", self.linear_P)
        # Rounding can leave a diagonal below 0 where it ought to be next to nothing.
        growth = 1 / np.sqrt(np.clip(self.ridge * diagonal, factor**2, 1.0))
        growth[:, 0] = 1.0  # the constant
        self.linear_P *= growth[:, :, None] * growth[:, None, :]

    def resume(self, other: "Experts") -> None:
        """Take over what experts of other sizes know. Experts that start over must earn their weights."""
        self.memory.resume(other.memory)
        self.change = other.change
        begins = {name for name in self.names if "trees" in name}
        if self.linear_W.shape == other.linear_W.shape:
            self.linear_P, self.linear_W = other.linear_P, other.linear_W
        else:
            begins |= {name for name in self.names if name.startswith("linear")}
        for name in self._lasting:
            setattr(self, name, getattr(other, name))
        known = dict(zip(other.names, other.losses.tolist(), strict=False))
        late = max(known.values()) + _BEGINS_LATE
        n = len(self.names)
        self.losses[:n] = [late if name in begins else known.get(name, late) for name in self.names]
        if self.names == other.names:
            self.stack_P, self.stack_W = other.stack_P, other.stack_W
            self.losses[n:] = other.losses[n:]

    def add_column(self) -> None:
        """One more input became a column: nothing is known of it."""
        self.heads.add_column()
        E, _, L = self.linear_W.shape
        larger = np.zeros((E, L + 1, L + 1))
        larger[:, :L, :L] = self.linear_P
        larger[:, L, L] = 1 / self.ridge
        self.linear_P = larger
        self.linear_W = np.ascontiguousarray(np.pad(self.linear_W, ((0, 0), (0, 0), (0, 1))))

    def add_output(self) -> None:
        """One more class: its scores are 0."""
        self.forest.add_output()
        for _ in range(self.n_scales):
            self.heads.add_output()
        self.linear_W = np.ascontiguousarray(np.pad(self.linear_W, ((0, 0), (0, 1), (0, 0))))

    def advance(self, records: Arrivals) -> Array:
        """Predict, then learn, records; the predictions, (n, K) or (n, 3)."""
        out = self._room_for(len(records.values))
        advance_records(self.run, records, self._arrays, out, self.nothing)
        return out

    def bind(self, Phi: Array, X: Array, values: Array, truths: Array, weights: Array, past: Array) -> tuple[Any, ...]:
        """The arguments of `run`, of which the last is filled with the predictions."""
        return Phi, X, values, truths, weights, *self._arrays, past, self._room_for(len(values))

    def _room_for(self, n: int) -> Array:
        """Room for the predictions of n records."""
        return np.empty((n, self.width or self.heads.W.shape[1]))

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices, the trees and the memory."""
        small = sum(int(getattr(self, name).nbytes) for name in ("linear_P", "linear_W", "stack_P", "stack_W"))
        return self.heads.nbytes + small + self.forest.nbytes + self.memory.nbytes

    @property
    def most_bytes(self) -> int:
        """Bytes of the arrays or, if those are more, of their state once memory and trees' window are full.

        Heads count twice: others are learned for each new metric.
        """
        return self.nbytes - self.heads.nbytes + 2 * max(self.heads.nbytes, self.heads.state_bytes)

    @property
    def names(self) -> list[str]:
        """The experts."""
        names = [f"head, drift {q:g}" for q in self.heads.drifts] + [f"linear {e}" for e in range(len(self.linear_W))]
        names += [f"asinh head, drift {q:g}" for q in self.heads.drifts if self.n_scales > 1]
        return names + self.other_names

    @property
    def weights(self) -> dict[str, float]:
        """Each expert's weight in their mixture, by name."""
        names = self.names
        weights = np.empty(len(names))
        hedge_weights(self.losses[: len(names)], self.prior[: len(names)], self.eta, weights)
        return dict(zip(names, weights.tolist(), strict=True))

    @property
    def shares(self) -> Shares:
        """The weights of the last mixture."""
        n = len(self.names)
        shares = np.empty(len(self.losses) - n)
        hedge_weights(self.losses[n:], self.prior[n:], self.eta, shares)
        mixed, *beside = shares.tolist()
        past = beside.pop(0) if self.n_beside else 0.0
        names = [f"stack, drift {q:g}" for q in self.stack_drifts]
        return Shares(mixed, past, dict(zip(names, beside, strict=True)))

    def state(self) -> State:
        """The fields of the state."""
        own = {name: getattr(self, name).copy() for name in self._fields}
        parts = self.heads, self.forest, self.memory, self.change
        return {**checked(own, self.rules), **{name: value for part in parts for name, value in part.state().items()}}

    def load_state(self, state: State, n_columns: int, n_linear: int | None, n_outputs: int, n_inputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.begin(n_columns, n_linear, n_outputs, n_inputs)
        self.heads.load_state(state, n_columns, n_outputs * self.n_scales)
        self.forest.load_state(state, n_inputs, n_outputs)
        self.memory.load_state(state, n_inputs)
        self.change.load_state(state)
        for name in self._fields:
            setattr(self, name, array(state, name, np.float64, *getattr(self, name).shape))

    @property
    def rules(self) -> Rules:
        """What the numbers of the state may be."""
        return dict.fromkeys(self._fields, all_finite)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        """What `run` reads and writes of the experts, in plain tuples."""
        linear = Linear(self.linear_P, self.linear_W, self.linear_rates, self.ridge)
        mixture = Mixture(self.losses, self.prior, self.change.block, self.eta)
        stacks = Stacking(self.stack_P, self.stack_W, self.stack_drifts, self.stack_ridge)
        parts = self.heads.arrays, linear, self.forest.arrays, self.memory.arrays, mixture, stacks
        return tuple(map(tuple, parts)), self._others

    @property
    @abc.abstractmethod
    def _others(self) -> tuple[Array, ...]:
        """What `run` reads and writes in addition to heads, linear experts, trees, memory, mixture and stacks."""

    @property
    def _fields(self) -> tuple[str, ...]:
        return ("linear_P", "linear_W", "stack_P", "stack_W", "losses")
