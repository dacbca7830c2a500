# docker build --tag streamkernel .
# The daemon in an image whose compiled code is there, run by a user without rights: docs/how-to/deploy.md.
FROM python:3.13-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ONLY_BINARY=:all: PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# What is installed is what the locks say, by its hashes: setuptools, which builds the wheel, and what runs.
COPY requirements.lock requirements-image.lock ./
RUN sed -n '/^setuptools==/,/# via/p' requirements.lock > setuptools.lock \
 && python -m pip install --require-hashes --requirement setuptools.lock \
 && python -m venv --without-pip /opt/streamkernel \
 && python -m pip --python /opt/streamkernel/bin/python install --no-compile --require-hashes --requirement requirements-image.lock
COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY connectors connectors
COPY examples/data examples/data
COPY streamkernel streamkernel
RUN python -m pip wheel --no-build-isolation --no-deps --wheel-dir wheel . \
 && python -m pip --python /opt/streamkernel/bin/python install --no-compile --no-deps wheel/*.whl \
 && /opt/streamkernel/bin/python -m compileall -q -j 0 /opt/streamkernel/lib

FROM python:3.13-slim-bookworm
RUN useradd --uid 10001 --user-group --shell /usr/sbin/nologin --home-dir /var/lib/streamkernel --create-home streamkernel \
 && install --directory --owner=streamkernel --group=streamkernel /var/cache/streamkernel
COPY --from=build /opt/streamkernel /opt/streamkernel
ENV PATH=/opt/streamkernel/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/var/cache/streamkernel \
    HEALTHZ=http://127.0.0.1:9108/healthz
USER 10001:10001
WORKDIR /var/lib/streamkernel
# For the level of the processor that builds: on one of a lower level the code is compiled again.
RUN streamkernel warm-up
EXPOSE 9108
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=2m --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(os.environ['HEALTHZ'], timeout=4)"]
ENTRYPOINT ["streamkernel"]
CMD ["run", "/etc/streamkernel/streamkernel.yaml"]
