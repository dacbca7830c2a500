"""Solvers for the last records of a stream, or for a file: linear models solved to the end."""

from streamkernel.window.dspdc import DSPDC
from streamkernel.window.exact import Exact
from streamkernel.window.iterates import Factorized
from streamkernel.window.linear_model import History
from streamkernel.window.s3gd import S3GD
from streamkernel.window.svrg import SVRG

__all__ = ["DSPDC", "S3GD", "SVRG", "Exact", "Factorized", "History"]
