# Judges an assignor where there is no Python: mount the project at /work.
#
#   docker build -t localhost/rebalance .                     programs over JSON lines, Python modules, logs (audit)
#   docker build -t localhost/rebalance-java --target java .  and classes of Java: with a JDK and Maven
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" localhost/rebalance check my_package:MyAssignor

FROM python:3.13-slim AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY api api
COPY base base
COPY cli cli
COPY explore explore
COPY gate gate
COPY live live
COPY model model
COPY pipeline pipeline
COPY properties properties
COPY rebalance_verifier rebalance_verifier
COPY report report
COPY specs specs
COPY traces traces
RUN python -m pip wheel --quiet --no-deps --wheel-dir /wheels .

FROM python:3.13-slim AS suite
COPY --from=wheel /wheels /wheels
RUN python -m pip install --quiet --no-cache-dir "$(echo /wheels/*.whl)[audit]" && rm -r /wheels
# Not root: what a target may do is what this user may do.
RUN useradd --create-home --uid 1000 judge
USER judge
WORKDIR /work
# Whoever runs it (--user) has a home for caches.
ENV HOME=/tmp PYTHONUNBUFFERED=1
ENTRYPOINT ["rebalance"]
CMD ["--help"]

FROM suite AS java
USER root
RUN apt-get update -q && apt-get install -qy --no-install-recommends default-jdk-headless maven \
  && rm -rf /var/lib/apt/lists/*
USER judge

# The last one is what `docker build` makes where no target is named.
FROM suite
