#!/usr/bin/env bash
# Records examples/data/access.log: a real nginx under mixed load from many loopback addresses.
#
#   examples/data/record.sh [output] [seconds]      (default: access.log beside this script, 240)
#
# Needs the Debian packages nginx-light and python3; installs nothing. Runs in real time, because
# per-minute limits only mean something over minutes. Touches nothing but a temporary folder, a free
# port of 127.0.0.1 and the output file, and stops the nginx it started. Linux only: there all of
# 127.0.0.0/8 is loopback, so every client can have an address of its own.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here/access.log}
seconds=${2:-240}

for tool in nginx python3; do
    command -v "$tool" >/dev/null || { echo "record.sh: $tool not found (Debian: nginx-light, python3)" >&2; exit 1; }
done

work=$(mktemp -d)
nginx_pid=
cleanup() {
    if [[ -n $nginx_pid ]]; then
        kill -QUIT "$nginx_pid" 2>/dev/null || true
        wait "$nginx_pid" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

# One worker, so that lines are in the order of the worker's clock. `combined` is nginx's built-in
# format; it holds neither the port nor the host name, so the log is the same on every machine.
cat >"$work/nginx.conf" <<CONF
daemon off;
worker_processes 1;
pid $work/nginx.pid;
error_log $work/error.log;
events { worker_connections 512; }
http {
    client_body_temp_path $work/body;
    proxy_temp_path       $work/proxy;
    fastcgi_temp_path     $work/fastcgi;
    access_log $work/access.log combined;
    default_type text/html;
    server {
        listen 127.0.0.1:$port;
        location = /            { return 200 "<!doctype html><title>shop</title>"; }
        location = /login       { return 401 "wrong name or password"; }
        location = /search      { return 200 "no results"; }
        location /articles/     { return 200 "an article"; }
        location /static/       { return 200 "asset"; }
        location /api/          { default_type application/json; return 200 '{"ok":true}'; }
        location = /old         { return 301 /; }
        location = /robots.txt  { return 200 "User-agent: *"; }
        location /              { return 404; }
    }
}
CONF

nginx -p "$work" -e "$work/error.log" -c "$work/nginx.conf" &
nginx_pid=$!

cat >"$work/load.py" <<'PYTHON'
"""Clients of several temperaments, each on a loopback address of its own."""

import http.client
import random
import socket
import sys
import threading
import time

PORT, SECONDS = int(sys.argv[1]), float(sys.argv[2])
START = time.monotonic()
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
PHONE = "Mozilla/5.0 (Android 16; Mobile; rv:140.0) Gecko/140.0"


def elapsed():
    return time.monotonic() - START


def sleep_until(moment):
    """Sleeps to a moment of the recording; false once the recording is over."""
    time.sleep(max(0.0, min(moment, SECONDS) - elapsed()))
    return elapsed() < SECONDS


class Client:
    """One address with one kept-alive connection, as a browser or a library would hold."""

    def __init__(self, address, agent):
        self.agent = agent
        self.address = address
        self.random = random.Random(address)
        self.connection = http.client.HTTPConnection(
            "127.0.0.1", PORT, timeout=10, source_address=(address, 0)
        )

    def send(self, target, method="GET", referer=None, body=None):
        headers = {"Host": "shop.example", "User-Agent": self.agent}
        if referer:
            headers["Referer"] = "http://shop.example" + referer
        try:
            self.connection.request(method, target, body=body, headers=headers)
            self.connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            self.connection.close()  # reconnects on the next request

    def send_raw(self, data):
        """Bytes that are not HTTP, on a connection of their own."""
        with socket.create_connection(("127.0.0.1", PORT), 10, (self.address, 0)) as raw:
            raw.sendall(data)
            raw.shutdown(socket.SHUT_WR)
            raw.recv(4096)


def visitor(address):
    """A person: a page and what it embeds, then reading."""
    client = Client(address, FIREFOX if address.endswith(("1", "3", "5", "7", "9")) else PHONE)
    at = client.random.uniform(0, 20)
    while sleep_until(at):
        article = f"/articles/{client.random.randint(1, 400)}"
        page = client.random.choice(["/", article, article, f"/search?q=lamp+{at:.0f}&page=1"])
        client.send(page)
        for asset in client.random.sample(["site.css", "app.js", "logo.svg"], client.random.randint(0, 3)):
            client.send(f"/static/{asset}?v=7", referer=page)
        at = elapsed() + client.random.uniform(6, 24)


def poller(address, every, agent):
    """Asks the same question at a steady pace, drift-free."""
    client = Client(address, agent)
    at = client.random.uniform(0, every)
    while sleep_until(at):
        client.send(f"/api/status?since={int(at)}")
        at += every


def crawler(address):
    """Fetches its whole queue as fast as it is answered, then goes away for a while."""
    client = Client(address, "ExampleBot/2.1 (+http://bot.example/about)")
    client.send("/robots.txt")
    at = 8.0
    while sleep_until(at):
        for _ in range(client.random.randint(80, 140)):
            client.send(f"/articles/{client.random.randint(1, 400)}")
            time.sleep(0.02)
        at += 45


def login_hammer(address):
    """Tries passwords for a third of the recording, then gives up."""
    client = Client(address, "python-requests/2.32.3")
    at = SECONDS * 0.30
    while at < SECONDS * 0.65 and sleep_until(at):
        client.send("/login", method="POST", body=f"name=admin&password={at:.2f}")
        at += client.random.uniform(0.04, 0.12)


def office(address):
    """Many people behind one address: irregular, about two requests a second."""
    client = Client(address, FIREFOX)
    at = 0.0
    while sleep_until(at):
        client.send(f"/articles/{client.random.randint(1, 400)}", referer="/")
        at += client.random.expovariate(2.0)


def scanner(address):
    """Looks for holes: missing pages, odd requests, and bytes that are no HTTP at all."""
    client = Client(address, 'probe "quoted" \\ agent')
    targets = [
        "/.env", "/wp-login.php", "/admin/config.php?debug=1", "/old", "/cgi-bin/test?a=1&b=%22x%22",
        "/%2e%2e/%2e%2e/etc/passwd", "/search?q=%C3%A9t%C3%A9", "/backup.zip", "/index.php?id=1'--",
        '/search?q="lamp"',
    ]
    at = 15.0
    while sleep_until(at):
        for target in targets:
            client.send(target, method=client.random.choice(["GET", "GET", "HEAD", "OPTIONS"]))
            time.sleep(0.25)
        client.send_raw(b"\x16\x03\x01\x00\xf4\x01\x00\x00\xf0\x03\x03")  # TLS to a plain port
        client.send_raw(b"HELLO \"there\" \xff\xfe\r\n\r\n")
        client.send_raw(b"\x00\r\n\r\n")
        client.send_raw(b"GET /unfinis")  # logged with an empty request
        at += 60


threads = [threading.Thread(target=visitor, args=(f"127.0.1.{n}",)) for n in range(1, 41)]
threads += [threading.Thread(target=poller, args=(f"127.0.4.{n}", 5.0, "curl/8.14.1")) for n in range(1, 5)]
threads += [
    threading.Thread(target=poller, args=("127.0.4.60", 1.0, "curl/8.14.1")),  # exactly 60 a minute
    threading.Thread(target=poller, args=("127.0.7.1", 0.3, "reports/1.4")),   # 200 a minute
    threading.Thread(target=crawler, args=("127.0.2.1",)),
    threading.Thread(target=login_hammer, args=("127.0.3.1",)),
    threading.Thread(target=office, args=("127.0.5.1",)),
    threading.Thread(target=scanner, args=("127.0.6.1",)),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
PYTHON

# Wait for nginx to listen, without making a request that the log would show.
for _ in $(seq 50); do
    [[ -s $work/nginx.pid ]] && break
    kill -0 "$nginx_pid" 2>/dev/null || { cat "$work/error.log" >&2; exit 1; }
    sleep 0.1
done

python3 "$work/load.py" "$port" "$seconds"

# QUIT lets nginx finish and write its last lines before the log is copied.
kill -QUIT "$nginx_pid"
wait "$nginx_pid" || true
nginx_pid=
cp "$work/access.log" "$output"
chmod 644 "$output"
echo "record.sh: $(wc -l <"$output") lines, $(wc -c <"$output") bytes in $output" >&2
