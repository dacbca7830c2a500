"""How a feature declares which others it needs and excludes, and the one check that compares the declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamkernel.daemon.base.model import Model
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.schema import Config

__all__ = ["OWN_CHECKPOINT", "Component", "conflicts"]

OWN_CHECKPOINT = "needs checkpoint.directory (in mode predict, in addition to serve_from)"
"""What a feature says that stores something next to the checkpoints."""


@dataclass(frozen=True)
class Component:
    """An optional feature.

    Attributes
    ----------
    name
        What others call it in what they need and exclude.
    keys
        Returns the keys of a configuration that turn it on; none: it is off.
    provides
        Further names under which others may need or exclude it.
    needs
        By the name of a feature that must be on as well, the message of the problem if none provides it.
    excludes
        By the name of a feature that must be off, the message of the problem if it is on.
    problems
        Returns the mistakes in its settings that no pair of features explains.
    model_problems
        Returns what does not fit the models, given by their names with the name of the published one.

    """

    name: str
    keys: Callable[[Config], Sequence[str]]
    provides: tuple[str, ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict)
    excludes: Mapping[str, str] = field(default_factory=dict)
    problems: Callable[[Config], Iterable[Problem]] = lambda _: ()
    model_problems: Callable[[Config, Mapping[str, Model], str], Iterable[Problem]] = lambda *_: ()

    def active(self, config: Config) -> bool:
        """Return whether a configuration turns the feature on."""
        return bool(self.keys(config))


def conflicts(config: Config, components: Iterable[Component]) -> Iterator[Problem]:
    """Yield the problems of the features that a configuration turns on.

    Examples
    --------
    >>> source = {"kind": "csv", "path": "a.csv"}
    >>> config = Config(source=source, model=["a.B"], serve={})
    >>> serving = Component("serving", lambda config: ["serve"] if config.serve else [], needs={"labels": "no labels"})
    >>> list(conflicts(config, [serving]))
    [Problem(path='serve', message='no labels')]

    """
    active = [component for component in components if component.active(config)]
    provided = {name for component in active for name in (component.name, *component.provides)}
    for component in active:
        wrong = [message for name, message in component.needs.items() if name not in provided]
        wrong += [message for name, message in component.excludes.items() if name in provided]
        yield from (Problem(key, message) for key in component.keys(config) for message in wrong)
        yield from component.problems(config)
