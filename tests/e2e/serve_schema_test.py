"""What /openapi.json says is what the server does: schemathesis makes requests of it, right and wrong ones."""
import json
import os
import subprocess
import sys
import unittest
from tempfile import TemporaryDirectory

from serve_case import Server, ServeTestCase
from structured_test import tiny_model
from support import ROOT

PACKAGES = os.path.join(ROOT, "build", "schemathesis")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,negative_data_rejection"


@unittest.skipUnless(os.path.isdir(os.path.join(PACKAGES, "schemathesis")), "schemathesis is not installed: ./dev test installs it")
class Schema(ServeTestCase):
    """A tiny model with random weights: what is looked at is the form of the answers, thousands of them."""
    TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"

    @classmethod
    def setUpClass(cls):
        with TemporaryDirectory() as folder:
            tiny_model(folder)
            with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
                json.dump({"chat_template": cls.TEMPLATE}, file)
            cls.server = Server("-c", "512", "--max-batch", "8", model=folder)

    def test_schemathesis_finds_nothing(self):
        done = subprocess.run([sys.executable, "-m", "schemathesis.cli", "run", self.server.url + "/openapi.json", "--max-examples", "4", "--workers", "3",
                               "--seed", "1", "--request-timeout", "60", "--checks", CHECKS, "--no-color", "--exclude-path", "/engine/events"], cwd=PACKAGES,
                              env={**os.environ, "PYTHONPATH": PACKAGES}, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])
        print("schemathesis:", next(line.strip() for line in done.stdout.splitlines() if "generated" in line and "passed" in line))
