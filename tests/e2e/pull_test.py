"""`qwench pull` against a hub on this machine that misbehaves on request (fake_hub.py)."""
import contextlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
import unittest

from fake_hub import COMMIT, FakeHub, etag, git_sha1, sha256
from hub_case import GGUF, NEEDED, REPO, SHARDED, TINY, WEIGHTS, PullCase, read
from support import BINARY


def wide_model(rows=300_000):
    """llama-tiny with a vocabulary so large that its weights are worth a plan."""
    content = read(TINY, WEIGHTS)
    header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
    header.pop("__metadata__", None)
    end = 0
    for name, tensor in header.items():
        if name in ("model.embed_tokens.weight", "lm_head.weight"):
            tensor["shape"][0] = rows
        size = 2 if tensor["dtype"] in ("BF16", "F16") else 4
        for n in tensor["shape"]:
            size *= n
        tensor["data_offsets"] = [end, end + size]
        end += size
    text = json.dumps(header).encode()
    config = json.loads(read(TINY, "config.json")) | {"vocab_size": rows}
    return {"config.json": json.dumps(config).encode(), WEIGHTS: len(text).to_bytes(8, "little") + text + bytes(end)}


class Layout(PullCase):
    def test_the_cache_has_the_layout_of_huggingface_hub(self):
        snapshot = self.assert_pulled(self.pull())
        folder = self.repo_folder()
        self.assertEqual(snapshot, os.path.join(folder, "snapshots", COMMIT))
        self.assertEqual(read(folder, "refs", "main"), COMMIT.encode())
        blobs = {etag(name, self.hub.repos[REPO][name]) for name in NEEDED}
        self.assertEqual(set(os.listdir(os.path.join(folder, "blobs"))), blobs)
        self.assertEqual(os.readlink(os.path.join(snapshot, WEIGHTS)), f"../../blobs/{sha256(self.hub.repos[REPO][WEIGHTS])}")
        self.assertEqual(os.readlink(os.path.join(snapshot, "config.json")),
                         f"../../blobs/{git_sha1(self.hub.repos[REPO]['config.json'])}")

    def test_it_says_what_it_will_fetch_and_whether_that_fits(self):
        outcome = self.pull()
        for words in (REPO, "3 files", "to fetch", "disk:", "memory: weights of 655.6 kB fit"):
            self.assertIn(words, outcome.err)

    def test_the_memory_plan_is_made_from_the_headers_before_the_weights_are_fetched(self):
        self.hub.repos["Test/Wide"] = wide_model()
        outcome = self.pull("Test/Wide")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertRegex(outcome.err, r"memory: it takes [0-9.]+ MB of the [0-9.]+ GB available at 512 positions")
        planned = json.loads(self.qwench("plan", "Test/Wide", "--json").out)
        self.assertEqual(planned["context"], 512)

    def test_inspect_compares_what_was_pulled_with_its_checksums(self):
        snapshot = self.assert_pulled(self.pull())
        outcome = self.qwench("inspect", "--check", REPO)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("3 files with the right checksum", outcome.out)
        blob = os.path.realpath(os.path.join(snapshot, WEIGHTS))
        content = bytearray(read(blob))
        content[-1] ^= 1
        with open(blob, "wb") as f:
            f.write(content)
        outcome = self.qwench("inspect", "--check", REPO)
        self.assertEqual(outcome.code, 1, outcome)
        self.assertIn("but the hub says " + sha256(self.hub.repos[REPO][WEIGHTS]), outcome.err)

    def test_a_second_pull_fetches_nothing(self):
        self.assert_pulled(self.pull())
        self.hub.requests.clear()
        outcome = self.pull()
        self.assert_pulled(outcome)
        self.assertIn("all here", outcome.err)
        self.assertEqual([r for r in self.hub.requests if r.method == "GET" and "/api/" not in r.path], [])

    def test_revisions(self):
        for revision, ref in (("v1", "v1"), ("refs/pr/1", "refs/pr/1"), (COMMIT, None)):
            with self.subTest(revision):
                self.assert_pulled(self.pull(f"{REPO}@{revision}"))
                if ref:
                    self.assertEqual(read(self.repo_folder(), "refs", ref), COMMIT.encode())
        self.assertFalse(os.path.exists(os.path.join(self.repo_folder(), "refs", "main")))
        self.assertEqual(self.qwench("score", f"{REPO}@v1", "--jsonl").code, 0)
        self.assertEqual(self.qwench("score", REPO, "--jsonl").code, 1)

    def test_shards_and_their_index(self):
        names = [name for name in os.listdir(SHARDED) if not name.startswith("golden") and name != "config.v5.json"]
        self.hub.repos["Test/Sharded"] = {name: read(SHARDED, name) for name in names} | {"consolidated.safetensors": b"x"}
        self.assert_pulled(self.pull("Test/Sharded"), "Test/Sharded", names)
        self.assertEqual(self.qwench("score", "Test/Sharded", "--jsonl").code, 0)

    def test_include_and_exclude(self):
        self.assert_pulled(self.pull(REPO, "--include", "*.json", "--exclude", "gen*"), files={"config.json"})
        self.assert_pulled(self.pull(REPO, "--exclude", WEIGHTS), files=NEEDED - {WEIGHTS})
        self.assert_pulled(self.pull(REPO, "--include", "*.onnx", "--include", "README.md"),
                           files=NEEDED - {WEIGHTS} | {"onnx/model.onnx", "README.md"})
        self.assertEqual(self.pull(REPO, "--include", "*.npy").code, 1)

    def test_modelscope(self):
        snapshot = self.assert_pulled(self.pull(REPO, "--source", "modelscope", HF_TOKEN="hf_secret"))
        self.assertEqual(read(self.repo_folder(), "refs", "master"), os.path.basename(snapshot).encode())
        self.assertEqual([r for r in self.hub.requests if "authorization" in r.headers], [])
        self.assertEqual(self.qwench("score", REPO, "--jsonl").code, 0)
        self.assertIn("nothing public", self.pull("Test/Nobody", "--source", "modelscope").err)

    def test_cache_variables(self):
        for variables, place in (({"HF_HUB_CACHE": f"{self.folder}/own"}, "own"), ({"HF_HOME": f"{self.folder}/home"}, "home/hub"),
                                 ({"HF_HOME": "", "XDG_CACHE_HOME": f"{self.folder}/xdg"}, "xdg/huggingface/hub")):
            with self.subTest(place):
                outcome = self.pull(REPO, "-q", **variables)
                self.assertEqual((outcome.code, outcome.err), (0, ""), outcome)
                self.assertTrue(outcome.out.startswith(os.path.join(self.folder, place, "models--")), outcome)

    def test_offline(self):
        self.assertIn("HF_HUB_OFFLINE", self.pull(HF_HUB_OFFLINE="1").err)
        self.assertEqual(self.hub.requests, [])


class Gguf(PullCase):
    def setUp(self):
        super().setUp()
        self.repo = "Test/Tiny-GGUF"
        self.hub.repos[self.repo] = {
            "config.json": b"{}", "tiny-q4_k_m.gguf": GGUF, "tiny-q8_0.gguf": GGUF + bytes(32), "mmproj-tiny-f16.gguf": b"x",
            "BF16/tiny-bf16-00001-of-00002.gguf": b"first", "BF16/tiny-bf16-00002-of-00002.gguf": b"second"}

    def test_the_chosen_one_alone_is_fetched(self):
        outcome = self.pull(self.repo + ":Q4_K_M")
        self.assert_pulled(outcome, self.repo, {"tiny-q4_k_m.gguf"})
        self.assertTrue(outcome.out.endswith("/tiny-q4_k_m.gguf\n"), outcome)
        self.assertEqual(self.qwench("inspect", "--check", self.repo + ":q4_k_m").code, 0)
        self.assertEqual(self.qwench("inspect", "--check", self.repo).code, 0)
        self.assertIn("qwench pull Test/Tiny-GGUF:Q8_0", self.qwench("run", self.repo + ":Q8_0", "hi").err)

    def test_all_parts_of_a_split_one(self):
        outcome = self.pull(self.repo + ":BF16")
        self.assert_pulled(outcome, self.repo, {"BF16/tiny-bf16-00001-of-00002.gguf", "BF16/tiny-bf16-00002-of-00002.gguf"})
        self.assertTrue(outcome.out.endswith("00001-of-00002.gguf\n"), outcome)

    def test_without_a_choice_it_says_what_there_is(self):
        outcome = self.pull(self.repo)
        self.assertEqual(outcome.code, 2, outcome)
        for label in ("bf16", "q4_k_m", "q8_0"):
            self.assertIn(f"{self.repo}:{label}", outcome.err)
        self.assertNotIn("mmproj", outcome.err)
        self.assertIn("q8_0", self.pull(self.repo + ":Q3_K").err)


class Trouble(PullCase):
    """Each ends well or in one sentence that says what to do."""

    def test_answers_that_refuse(self):
        listing = f"GET /api/models/{REPO}/revision/main"
        for status, headers, words in ((401, {}, ("login", "HF_TOKEN")), (403, {"X-Error-Code": "GatedRepo"}, ("access", self.hub.url)),
                                       (404, {"X-Error-Code": "RepoNotFound"}, ("nothing", "spelling")),
                                       (404, {"X-Error-Code": "RevisionNotFound"}, ("revision", "main"))):
            with self.subTest(status):
                self.hub.on(listing, {"status": status, "headers": headers})
                outcome = self.pull()
                self.assertIn(outcome.code, (1, 2), outcome)
                self.assertEqual(len(outcome.err.splitlines()), 1, outcome)
                for word in (REPO, *words):
                    self.assertIn(word, outcome.err)
        self.hub.on(listing, {"status": 401})
        self.assertIn("does not accept the token", self.pull(HF_TOKEN="hf_wrong").err)

    def test_a_server_that_is_busy_is_asked_again(self):
        self.hub.on(f"GET /api/models/{REPO}/revision/main", {"status": 503})
        self.hub.on(f"HEAD /{REPO}/resolve/{COMMIT}/{WEIGHTS}", {"status": 429, "headers": {"Retry-After": "1"}})
        self.hub.on(f"content {WEIGHTS}", {"status": 500}, {"status": 502})
        begin = time.monotonic()
        outcome = self.pull()
        self.assert_pulled(outcome)
        self.assertGreater(time.monotonic() - begin, 2.4)  # 0.5 and Retry-After's 1, then 0.5 and 1
        for words in ("503", "429", "500", "502"):
            self.assertIn(words, outcome.err)

    def test_a_server_that_stays_busy_is_given_up(self):
        self.hub.on(f"content {WEIGHTS}", *[{"status": 503, "headers": {"Retry-After": "0"}}] * 9)
        self.assert_refused(self.pull(), WEIGHTS, "503")
        self.assertEqual(len(self.hub.content_requests(WEIGHTS)), 5)

    def test_a_server_that_asks_for_an_hour_is_not_waited_for(self):
        self.hub.on(f"GET /api/models/{REPO}/revision/main", {"status": 429, "headers": {"Retry-After": "3600"}})
        outcome = self.pull()
        self.assert_fails_cleanly(outcome)
        self.assertIn("3600 s", outcome.err)
        self.assertLess(outcome.seconds, 10)

    def test_a_server_that_is_not_there(self):
        outcome = self.pull(HF_ENDPOINT="http://127.0.0.1:9")
        self.assert_fails_cleanly(outcome)
        self.assertIn("cannot be reached", outcome.err)

    def test_a_cut_transfer_goes_on_where_it_stopped(self):
        self.hub.on(f"content {WEIGHTS}", {"cut": 100_000}, {"cut": 200_000}, {"cut": 0})
        self.assert_pulled(self.pull())
        ranges = [r.headers.get("range") for r in self.hub.content_requests(WEIGHTS)]
        self.assertEqual(ranges, [None, "bytes=100000-", "bytes=300000-", "bytes=300000-"])

    def test_a_stalled_transfer_goes_on(self):
        self.hub.on(f"content {WEIGHTS}", {"cut": 100_000, "hang": 5})
        outcome = self.pull(HF_HUB_DOWNLOAD_TIMEOUT="1")
        self.assert_pulled(outcome)
        self.assertEqual(self.hub.content_requests(WEIGHTS)[-1].headers["range"], "bytes=100000-")

    def test_a_server_that_ignores_range_sends_it_all_again(self):
        self.hub.on(f"content {WEIGHTS}", {"cut": 100_000}, {"ignore_range": True})
        self.assert_pulled(self.pull())

    def test_a_body_without_length_that_ends_early_is_resumed(self):
        self.hub.on(f"content {WEIGHTS}", {"chunked": True, "cut": 1000})
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.content_requests(WEIGHTS)[-1].headers["range"], "bytes=1000-")

    def test_a_second_pull_takes_up_what_the_first_left(self):
        self.hub.on(f"content {WEIGHTS}", {"cut": 400_000}, *[{"status": 404}])
        self.assert_refused(self.pull(), WEIGHTS)
        self.assertEqual(len(self.unfinished()), 1)
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.content_requests(WEIGHTS)[-1].headers["range"], "bytes=400000-")

    def test_a_rest_that_does_not_belong_to_the_file_is_thrown_away(self):
        blobs = os.path.join(self.repo_folder(), "blobs")
        for rest in (b"x" * 1000, b"x" * len(self.hub.repos[REPO][WEIGHTS]), b"x" * 2_000_000):
            with self.subTest(len(rest)):
                os.makedirs(blobs, exist_ok=True)
                name = os.path.join(blobs, sha256(self.hub.repos[REPO][WEIGHTS]))
                with contextlib.suppress(FileNotFoundError):
                    os.remove(name)
                with open(name + ".incomplete", "wb") as f:
                    f.write(rest)
                self.assert_pulled(self.pull())

    def test_wrong_bytes_once_are_fetched_anew(self):
        self.hub.on(f"content {WEIGHTS}", {"wrong_bytes": True})
        outcome = self.pull()
        self.assert_pulled(outcome)
        self.assertIn("checksum", outcome.err)

    def test_wrong_bytes_are_never_kept(self):
        for name in (WEIGHTS, "config.json"):
            with self.subTest(name):
                shutil.rmtree(self.cache, ignore_errors=True)
                self.hub.on(f"content {name}", {"wrong_bytes": True}, {"wrong_bytes": True})
                self.assert_refused(self.pull(), name, "checksum")
                self.assert_nothing_unfinished_of(name)
                blob = os.path.join(self.repo_folder(), "blobs", etag(name, self.hub.repos[REPO][name]))
                self.assertFalse(os.path.exists(blob))

    def test_wrong_lengths(self):
        for action in ({"longer": 10}, {"longer": 10, "chunked": True}):
            with self.subTest(action):
                self.hub.on(f"content {WEIGHTS}", action)
                self.assert_refused(self.pull(), WEIGHTS, "655632")
                self.assert_nothing_unfinished_of(WEIGHTS)
        self.hub.on(f"content {WEIGHTS}", {"cut": 1000}, {"content_range": "bytes 7-655631/655632"})
        self.assert_refused(self.pull(), WEIGHTS, "expected bytes 1000-")

    def test_hostile_lists(self):
        listing = f"GET /api/models/{REPO}/revision/main"
        good = {"sha": COMMIT, "siblings": [{"rfilename": "config.json"}]}
        for body, words in (
                *[(json.dumps({"sha": COMMIT, "siblings": [{"rfilename": name}]}), "relative path") for name in
                  ("../../evil.json", "/etc/passwd", "a/../../b.json", "a//b", "", "a\\..\\b", "a\nb", "x" * 300)],
                (json.dumps({**good, "sha": "../.."}), "commit"), (json.dumps({"siblings": []}), "commit"),
                (json.dumps({"sha": COMMIT}), "siblings"), ("not json", "JSON"), ("[" * 100_000, ""), ("[]", "commit"),
                (json.dumps({"sha": COMMIT, "siblings": [{"rfilename": "config.json", "size": -1}]}), "size"),
                (json.dumps({"sha": COMMIT, "siblings": [{"rfilename": "config.json", "size": 1e300}]}), "size"),
                (json.dumps({"sha": COMMIT, "siblings": [{"rfilename": "a.gguf"}, {"rfilename": "a.gguf"}]}), "twice"),
                (json.dumps({"sha": COMMIT, "siblings": [{"rfilename": "m.gguf", "size": 2 ** 61}]}), ""),
                (json.dumps({"sha": COMMIT, "siblings": [], "x": "y" * (20 << 20)}), "bytes")):
            with self.subTest(body[:80]):
                self.hub.on(listing, {"body": body.encode()})
                outcome = self.pull()
                self.assert_fails_cleanly(outcome)
                self.assertIn(words.lower(), outcome.err.lower())
                self.assertFalse(os.path.exists(self.cache), "nothing may be written")

    def test_a_file_larger_than_the_disk_is_refused_before_it_begins(self):
        size = 1 << 60
        self.hub.on(f"GET /api/models/{REPO}/revision/main",
                    {"body": json.dumps({"sha": COMMIT, "siblings": [{"rfilename": WEIGHTS, "size": size}]}).encode()})
        self.hub.on(f"HEAD /{REPO}/resolve/{COMMIT}/{WEIGHTS}",
                    {"status": 302, "headers": {"X-Linked-Etag": f'"{"0" * 64}"', "X-Linked-Size": str(size), "Location": self.hub.cdn_url}})
        outcome = self.pull()
        self.assert_refused(outcome, str(size), "HF_HUB_CACHE")
        self.assertIn("do NOT fit", outcome.err)
        self.assertEqual(self.hub.content_requests(WEIGHTS), [])

    def test_etags_that_lead_elsewhere(self):
        for tag in ("../../../evil", "a/b", ".hidden", ""):
            with self.subTest(tag):
                self.hub.on(f"HEAD /{REPO}/resolve/{COMMIT}/config.json",
                            {"status": 200, "headers": {"ETag": f'"{tag}"', "Content-Length": "13"}})
                outcome = self.pull(REPO, "--include", "config.json")
                self.assert_fails_cleanly(outcome)

    def test_redirects_end(self):
        where = f"GET /api/models/{REPO}/revision/main"
        self.hub.on(where, *[{"status": 307, "headers": {"Location": where[4:]}}] * 20)
        outcome = self.pull()
        self.assert_fails_cleanly(outcome)
        self.assertIn("redirects", outcome.err)

    def test_redirects_to_other_protocols_are_refused(self):
        for target in ("file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/"):
            with self.subTest(target):
                self.hub.actions.clear()
                self.hub.on(f"GET /api/models/{REPO}/revision/main", {"status": 302, "headers": {"Location": target}})
                outcome = self.pull()
                self.assert_fails_cleanly(outcome)
                self.assertIn("http", outcome.err)


class Certificates(PullCase):
    def test_a_server_that_cannot_prove_its_name_is_refused(self):
        certificate = os.path.join(self.folder, "certificate.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                        "-keyout", certificate + ".key", "-out", certificate], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate + ".key")
        with FakeHub({REPO: self.hub.repos[REPO]}, context) as hub:
            outcome = self.pull(HF_ENDPOINT=hub.url, HF_TOKEN="hf_secret")
            self.assert_fails_cleanly(outcome)
            self.assertIn("certificate", outcome.err)
            self.assertEqual(hub.requests, [])


class Token(PullCase):
    def test_it_goes_to_the_endpoint_alone(self):
        os.makedirs(f"{self.folder}/elsewhere")
        for where, text in ((f"{self.folder}/token", "hf_file\n"), (f"{self.folder}/elsewhere/t", "  hf_path \n")):
            with open(where, "w", encoding="utf-8") as f:
                f.write(text)
        for env, token in (({"HF_TOKEN": "hf_secret"}, "hf_secret"), ({}, "hf_file"),
                           ({"HF_TOKEN_PATH": f"{self.folder}/elsewhere/t"}, "hf_path")):
            with self.subTest(token):
                self.hub.requests.clear()
                self.assert_pulled(self.pull(**env, HF_HUB_CACHE=f"{self.folder}/{token}"))
                seen = {server: {r.headers.get("authorization") for r in self.hub.requests if r.server == server}
                        for server in ("hub", "cdn")}
                self.assertEqual(seen, {"hub": {f"Bearer {token}"}, "cdn": {None}})

    def test_it_can_be_left_out(self):
        self.assert_pulled(self.pull(HF_TOKEN="hf_secret", HF_HUB_DISABLE_IMPLICIT_TOKEN="1"))
        self.assertEqual([r for r in self.hub.requests if "authorization" in r.headers], [])

    def test_one_that_would_break_the_header_is_refused(self):
        outcome = self.pull(HF_TOKEN="hf_a\r\nHost: evil")
        self.assert_fails_cleanly(outcome)
        self.assertEqual(self.hub.requests, [])


class Interrupted(PullCase):
    SLOW = {"pause": 0.15}

    def test_ctrl_c_keeps_what_is_there(self):
        self.hub.on(f"content {WEIGHTS}", self.SLOW)
        process = self.start("pull", REPO)
        self.wait_until(lambda: self.unfinished() and self.hub.content_requests(WEIGHTS))
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertEqual((process.returncode, out), (130, ""), err)
        self.assertIn("kept", err)
        self.assert_pulled(self.pull())
        self.assertIn("range", self.hub.content_requests(WEIGHTS)[-1].headers)

    def test_two_pulls_at_once_fetch_it_once(self):
        self.hub.on(f"content {WEIGHTS}", self.SLOW)
        first = self.start("pull", REPO)
        self.wait_until(lambda: self.hub.content_requests(WEIGHTS))
        second = self.start("pull", REPO)
        answers = [process.communicate(timeout=60) for process in (first, second)]
        self.assertEqual([first.returncode, second.returncode], [0, 0], answers)
        self.assertIn("waiting", answers[1][1])
        self.assertEqual(len(self.hub.content_requests(WEIGHTS)), 1)
        self.assert_pulled(self.pull())

    def test_one_that_was_killed_leaves_no_lock(self):
        self.hub.on(f"content {WEIGHTS}", self.SLOW)
        process = self.start("pull", REPO)
        self.wait_until(lambda: self.hub.content_requests(WEIGHTS))
        process.kill()
        process.communicate(timeout=20)
        self.assert_pulled(self.pull())


class DiskFull(PullCase):
    def test_a_limit_on_file_sizes(self):
        done = subprocess.run(["bash", "-c", 'ulimit -f 200; exec "$@"', "-", BINARY, "pull", REPO], env={**os.environ, **self.env},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("after 204800 of 655632 bytes", done.stderr)
        self.assert_pulled(self.pull())
        self.assertEqual(self.hub.content_requests(WEIGHTS)[-1].headers["range"], "bytes=204800-")

    def test_a_disk_that_fills_up_meanwhile(self):
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        mounted = os.getuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "tmpfs", disk], check=False,
                                                      stderr=subprocess.DEVNULL).returncode == 0
        if not mounted:
            self.skipTest("only root may mount a small tmpfs; the limit on file sizes stands in for it")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        filler = os.path.join(disk, "filler")

        def fill():
            with open(filler, "wb", buffering=0) as f, contextlib.suppress(OSError):
                while f.write(bytes(4096)):
                    pass

        self.hub.on(f"content {WEIGHTS}", {"halfway": fill, "pause": 0.05})
        outcome = self.pull(HF_HUB_CACHE=disk)
        self.assert_refused(outcome, "the disk is full", "pull again")
        os.remove(filler)
        self.assertEqual(self.pull(HF_HUB_CACHE=disk).code, 0)
        self.assertIn("range", self.hub.content_requests(WEIGHTS)[-1].headers)


if __name__ == "__main__":
    unittest.main()
