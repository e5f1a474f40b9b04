"""deploy/: the dashboard asks only for metrics that the server has, and the configuration is what its readers expect."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from serve_case import ServeTestCase
from support import ROOT

DEPLOY = os.path.join(ROOT, "deploy")


class Deploy(ServeTestCase):
    ARGUMENTS = ("-c", "512")

    def queries(self):
        with open(os.path.join(DEPLOY, "grafana", "dashboard.json"), encoding="utf-8") as f:
            return [target["expr"] for panel in json.load(f)["panels"] for target in panel["targets"]]

    def test_every_metric_of_the_dashboard_is_there(self):
        self.server.post("/v1/completions", {"prompt": "Hi", "max_tokens": 2})
        text = self.server.get("/metrics")[2].decode()
        there = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
        names = {name for query in self.queries() for name in re.findall(r"qwench:\w+|process_\w+", query)}
        self.assertGreater(len(names), 12)
        self.assertEqual(names - there, set())

    @unittest.skipIf(shutil.which("promtool") is None, "prometheus is not installed: ./dev deps metrics installs it")
    def test_promtool_finds_the_configuration_and_the_metrics_sound(self):
        with tempfile.TemporaryDirectory() as folder:
            key = os.path.join(folder, "key")
            with open(key, "w", encoding="utf-8") as f:
                f.write("none")
            with open(os.path.join(DEPLOY, "prometheus.yml"), encoding="utf-8") as f:
                text = f.read().replace("/etc/prometheus/qwench-key", key)
            path = os.path.join(folder, "prometheus.yml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            checked = subprocess.run(["promtool", "check", "config", path], capture_output=True, text=True, check=False)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        read = subprocess.run(["promtool", "check", "metrics"], input=self.server.get("/metrics")[2], capture_output=True, check=False)
        self.assertNotIn(b"error while linting", read.stderr)
        self.assertIn(read.returncode, (0, 3), read.stderr)  # 3: a matter of style, such as vLLM's names

    @unittest.skipIf(shutil.which("prometheus") is None, "prometheus is not installed: ./dev deps metrics installs it")
    def test_prometheus_scrapes_it_and_answers_the_dashboard(self):
        self.server.post("/v1/completions", {"prompt": "Hi", "max_tokens": 2})
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(DEPLOY, "prometheus.yml"), encoding="utf-8") as f:
                text = f.read().replace("qwench:8080", f"127.0.0.1:{self.server.port}").replace("5s", "1s")
            key = os.path.join(folder, "key")
            with open(key, "w", encoding="utf-8") as f:
                f.write("none")
            with open(os.path.join(folder, "prometheus.yml"), "w", encoding="utf-8") as f:
                f.write(text.replace("/etc/prometheus/qwench-key", key))
            port = 19090 + os.getpid() % 1000
            process = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                        f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                def ask(query):
                    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query.replace("$model", ".*")})
                    with urllib.request.urlopen(url, timeout=10) as answer:
                        answer = json.load(answer)
                    self.assertEqual(answer["status"], "success", query)
                    return [value["value"][1] for value in answer["data"]["result"] if value["value"][1] != "NaN"]
                end = time.monotonic() + 60
                missing = self.queries()
                while missing:
                    # Rates need two scrapes with work between them.
                    self.server.post("/v1/completions", {"prompt": "Once upon a time there was a river that", "max_tokens": 4})
                    try:
                        missing = [query for query in missing if not ask(query)]
                    except OSError:
                        pass
                    self.assertLess(time.monotonic(), end, f"without data: {missing}")
                    time.sleep(0.3)
                print(f"prometheus: all {len(self.queries())} expressions of the dashboard have data")
            finally:
                process.terminate()
                process.wait()
