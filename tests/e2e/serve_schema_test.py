"""What /openapi.json says is what the server does: schemathesis makes requests of it, right and wrong ones."""
import os
import subprocess
import sys
import unittest

from serve_case import ServeTestCase
from support import ROOT

PACKAGES = os.path.join(ROOT, "build", "schemathesis")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,negative_data_rejection"


@unittest.skipUnless(os.path.isdir(os.path.join(PACKAGES, "schemathesis")), "schemathesis is not installed: ./dev test installs it")
class Schema(ServeTestCase):
    ARGUMENTS = ("-c", "128", "--max-batch", "8")

    def test_schemathesis_finds_nothing(self):
        done = subprocess.run([sys.executable, "-m", "schemathesis.cli", "run", self.server.url + "/openapi.json", "--max-examples", "4", "--workers", "3",
                               "--seed", "1", "--request-timeout", "60", "--checks", CHECKS, "--no-color", "--exclude-path", "/engine/events"], cwd=PACKAGES,
                              env={**os.environ, "PYTHONPATH": PACKAGES}, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])
        print("schemathesis:", next(line.strip() for line in done.stdout.splitlines() if "generated" in line and "passed" in line))
