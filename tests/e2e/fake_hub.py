"""A hub on this machine for the tests of `qwench pull`: it speaks the protocols of Hugging Face and ModelScope, and misbehaves
on request.

Large files (weights) are handed out as the hub does it: the answer names their SHA-256 and size, and redirects to a second
server, which is another origin.
"""
import hashlib
import http.server
import json
import threading
import time
import urllib.parse

COMMIT = "c0ffee0123456789c0ffee0123456789c0ffee01"
LARGE = (".safetensors", ".gguf")


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def git_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def etag(path, content):
    return sha256(content) if path.endswith(LARGE) else git_sha1(content)


class Request:
    def __init__(self, server, handler):
        self.server = server  # "hub" or "cdn"
        self.method, self.path = handler.command, urllib.parse.unquote(handler.path)
        self.headers = {name.lower(): value for name, value in handler.headers.items()}

    def __repr__(self):
        return f"{self.server} {self.method} {self.path} {self.headers.get('range', '')}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.handle_request()

    def do_GET(self):
        self.handle_request()

    def log_message(self, *_):
        pass

    def handle_request(self):
        request = Request(self.server.name, self)
        self.hub.note(request)
        try:
            if request.server == "cdn":
                repo, path = request.path[1:].split("?")[0].split("/-/")
                self.send_content(path, self.hub.repos[repo][path])
            else:
                self.answer(request)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    @property
    def hub(self):
        return self.server.hub

    def answer(self, request):
        parts = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(parts.path)
        action = self.hub.next_action(f"{request.method} {path}")
        if action and self.do_action(action):
            return
        if path.startswith("/api/v1/models/"):
            return self.send_modelscope_list(path[len("/api/v1/models/"):].removesuffix("/repo/files"))
        if path.startswith("/api/models/") and "/tree/" in path:  # which huggingface_hub reads
            return self.send_tree(path[len("/api/models/"):].partition("/tree/")[0])
        if path.startswith("/api/models/"):
            repo, _, revision = path[len("/api/models/"):].partition("/revision/")
            return self.send_list(repo, revision)
        repo, _, rest = path.lstrip("/").removeprefix("models/").partition("/resolve/")
        revision, _, file = rest.partition("/")
        content = self.hub.repos.get(repo, {}).get(file)
        if content is None:
            return self.send(404, b"Entry not found", {"X-Error-Code": "EntryNotFound"})
        headers = {"X-Repo-Commit": revision, "ETag": f'"{etag(file, content)}"'}
        if file.endswith(LARGE):
            headers |= {"X-Linked-Etag": f'"{sha256(content)}"', "X-Linked-Size": str(len(content)), "ETag": '"of-the-redirect"',
                        "Location": f"{self.hub.cdn_url}/{repo}/-/{urllib.parse.quote(file)}?signature=abc"}
            return self.send(302, b"", headers)
        if request.method == "HEAD":
            return self.send(200, content, headers)
        return self.send_content(file, content, headers)

    def send_list(self, repo, revision):
        if repo not in self.hub.repos:
            return self.send(401, b'{"error": "no"}', {"X-Error-Code": "RepoNotFound"})
        if revision not in self.hub.revisions:
            return self.send(404, b'{"error": "no"}', {"X-Error-Code": "RevisionNotFound"})
        siblings = []
        for path, content in self.hub.repos[repo].items():
            entry = {"rfilename": path, "size": len(content), "blobId": git_sha1(content)}
            if path.endswith(LARGE):
                entry["lfs"] = {"sha256": sha256(content), "size": len(content), "pointerSize": 134}
            siblings.append(entry)
        return self.send(200, json.dumps({"id": repo, "sha": COMMIT, "siblings": siblings, "private": False}).encode())

    def send_tree(self, repo):
        entries = [{"type": "file", "path": path, "size": len(content), "oid": git_sha1(content),
                    **({"lfs": {"oid": sha256(content), "size": len(content), "pointerSize": 134}} if path.endswith(LARGE) else {})}
                   for path, content in self.hub.repos[repo].items()]
        return self.send(200, json.dumps(entries).encode())

    def send_modelscope_list(self, repo):
        if repo not in self.hub.repos:
            return self.send(404, b'{"Code": 10010205001, "Message": "not found"}')
        files = [{"Path": "folder", "Name": "folder", "Type": "tree", "Size": 0, "Sha256": ""}]
        files += [{"Path": path, "Name": path, "Type": "blob", "Size": len(content), "Sha256": sha256(content),
                   "Revision": "abc"} for path, content in self.hub.repos[repo].items()]
        return self.send(200, json.dumps({"Code": 200, "Data": {"Files": files}, "Success": True}).encode())

    def send(self, status, body, headers=None):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_action(self, action):
        """True when the request has been answered."""
        if "status" in action:
            self.send(action["status"], b"an error page", action.get("headers"))
            return True
        if "body" in action:
            self.send(200, action["body"], action.get("headers"))
            return True
        if "hang_up" in action:
            self.close_connection = True
            return True
        return False

    def send_content(self, path, content, headers=None):
        """The bytes themselves, with Range, or what was asked for instead."""
        action = self.hub.next_action(f"content {path}") or {}
        if self.do_action(action):
            return
        begin, status = 0, 200
        asked = self.headers.get("Range")
        headers = dict(headers or {})
        total = len(content)
        if asked and not action.get("ignore_range"):
            begin, status = int(asked.removeprefix("bytes=").removesuffix("-")), 206
            if begin >= total:
                return self.send(416, b"")
            headers["Content-Range"] = action.get("content_range", f"bytes {begin}-{total - 1}/{total}")
        if action.get("wrong_bytes"):
            content = bytes(byte ^ 1 for byte in content)
        if action.get("longer"):
            content += bytes(action["longer"])
        body = content[begin:]
        if action.get("chunked"):
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = str(len(body))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        cut = action.get("cut", len(body))
        if action.get("chunked"):
            body = body[:cut]
            self.wfile.write(b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
            return
        for at in range(0, cut, 65536):
            self.wfile.write(body[at:min(at + 65536, cut)])
            self.wfile.flush()
            if action.get("halfway") and at + 65536 >= cut // 2:
                action.pop("halfway")()
            if "pause" in action:
                time.sleep(action["pause"])
        if "hang" in action:
            time.sleep(action["hang"])
        if cut < len(body):
            self.close_connection = True


class FakeHub:
    """repos: {"Org/Name": {path: bytes}}; requests: all that came. Use as a context manager."""

    def __init__(self, repos, tls=None):
        self.repos = repos
        self.revisions = {"main", "v1", COMMIT, "refs/pr/1"}
        self.requests = []
        self.actions = {}
        self.lock = threading.Lock()
        self.servers = []
        for name in ("hub", "cdn"):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            server.name, server.hub, server.daemon_threads = name, self, True
            server.handle_error = lambda *_: None
            if tls:
                server.socket = tls.wrap_socket(server.socket, server_side=True)
            self.servers.append(server)
        self.url, self.cdn_url = (f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}" for server in self.servers)

    def __enter__(self):
        for server in self.servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def note(self, request):
        with self.lock:
            self.requests.append(request)

    def on(self, what, *actions):
        """The next requests of this kind, "GET /api/models/..." or "content model.safetensors", get these answers."""
        with self.lock:
            self.actions.setdefault(what, []).extend(dict(action) for action in actions)

    def next_action(self, what):
        with self.lock:
            queue = self.actions.get(what)
            return queue.pop(0) if queue else None

    def content_requests(self, path):
        """GET requests for a file's bytes, in order."""
        with self.lock:
            return [r for r in self.requests if r.method == "GET" and r.path.split("?")[0].endswith("/" + path) and
                    (r.server == "cdn" or not path.endswith(LARGE))]
