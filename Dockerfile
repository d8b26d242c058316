# bacs serve as a plain user. docs/serve.md has the commands.
# The image gets PyTorch's CPU build, since a build sees no GPU; --build-arg TORCH=default leaves the choice to pip.
FROM python:3.11-slim
ARG TORCH=
WORKDIR /opt/bacs
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY tools/install_torch.py ./tools/
COPY src ./src
RUN export PIP_NO_CACHE_DIR=1 \
    && python tools/install_torch.py torch \
    && pip install -c constraints.txt '.[serve]' \
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
