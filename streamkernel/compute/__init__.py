"""The jitted kernels: plain functions of arrays, the only place with compiled code, importing nothing else of ours."""
