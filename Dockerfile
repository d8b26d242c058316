# bacs serve as a plain user. docs/serve.md has the commands.
# TORCH_INDEX may name an index of CPU builds of torch, as in the Makefile.
FROM python:3.11-slim
ARG TORCH_INDEX=
WORKDIR /opt/bacs
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
# torch goes first and alone, so that no other requirement makes pip choose another build.
RUN pip install --no-cache-dir --no-deps ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$(grep '^torch==' constraints.txt)" \
    && pip install --no-cache-dir -c constraints.txt '.[serve]' \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin bacs \
    && install --directory --owner bacs /state
USER bacs
VOLUME /state
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/v2/health/ready', timeout=5)"]
ENTRYPOINT ["bacs", "serve"]
CMD ["/run", "--state", "/state/live", "--host", "0.0.0.0", "--token-file", "/token"]
