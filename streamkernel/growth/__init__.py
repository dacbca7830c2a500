"""The growing kernel machine, and its policies DSG, UDSG, CDSG: which block a step touches, and how far."""

from streamkernel.growth.base import BlockUpdate, Growth, GrowthContext
from streamkernel.growth.cdsg import CDSG
from streamkernel.growth.dsg import DSG
from streamkernel.growth.one_class_step import OneClassStep
from streamkernel.growth.udsg import UDSG

__all__ = ["CDSG", "DSG", "UDSG", "BlockUpdate", "Growth", "GrowthContext", "OneClassStep"]
