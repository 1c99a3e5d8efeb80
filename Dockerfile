# docker build -t ambermq . ; docker run -p 127.0.0.1:5672:5672 -v ambermq:/data ambermq
FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/ambermq && /opt/ambermq/bin/pip install --no-cache-dir .

FROM python:3.13-slim-bookworm
RUN groupadd --system --gid 5672 ambermq \
 && useradd --system --uid 5672 --gid ambermq --home-dir /data --shell /usr/sbin/nologin ambermq \
 && install -d -o ambermq -g ambermq -m 0700 /data
COPY --from=build /opt/ambermq /opt/ambermq
ENV PATH=/opt/ambermq/bin:$PATH AMBERMQ_DATA=/data PYTHONUNBUFFERED=1
USER ambermq
VOLUME /data
EXPOSE 5672
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["ambermq", "check"]
# Inside the container every interface is the container's own. Publish the port on the loopback of the host, or give users.
CMD ["ambermq", "serve", "--host", "0.0.0.0", "--anonymous"]
