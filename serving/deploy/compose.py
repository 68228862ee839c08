"""compose.yaml: the server on one machine, for Docker Compose."""

import os
from pathlib import Path
from typing import Any

import yaml

from .exported import Exported
from .server_config import BATCHES_AT_ONCE, model_path, server_arguments

FILE = "compose.yaml"
GRPC_PORT, REST_PORT = 8500, 8501

_HEADING = """\
# TensorFlow Serving with the files beside this one: docker compose up
# The ports are reached from this machine only; take 127.0.0.1 away to let others in, who need no password.
# The memory is an estimate; README.md says how it comes about.
"""


def compose_file(export: Exported, output: Path, model_name: str, image: str) -> str:
    """Returns the file, which finds the export from where it will lie."""
    # With a dot in front, or Compose would take a name for that of a volume.
    source = f"./{os.path.relpath(os.path.realpath(export.directory), os.path.realpath(output))}"
    service: dict[str, Any] = {
        "image": image,
        "command": server_arguments("/config"),
        "ports": [f"127.0.0.1:{port}:{port}" for port in (GRPC_PORT, REST_PORT)],
        "volumes": [
            # Compose would read a single $ as the begin of a variable.
            _bind(source.replace("$", "$$"), model_path(model_name)),
            _bind(".", "/config"),
        ],
        "healthcheck": {
            "test": ["CMD", "bash", "-c", health_check(model_name)],
            "interval": "10s",
            "timeout": "5s",
            "start_period": "10m",
        },
        "deploy": {"resources": {"limits": {"memory": f"{export.busy_mib(BATCHES_AT_ONCE)}M"}}},
        "restart": "unless-stopped",
    }
    return _HEADING + yaml.safe_dump({"services": {"model": service}}, sort_keys=False, width=1000)


def health_check(model_name: str, port: int = REST_PORT) -> str:
    """Returns a line of Bash that fails unless a version is available; the image has no program that speaks HTTP."""
    request = rf"GET /v1/models/{model_name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    return f"""exec 3<>/dev/tcp/127.0.0.1/{port} && printf '{request}' >&3 && grep -q '"AVAILABLE"' <&3"""


def _bind(source: str, target: str) -> dict[str, Any]:
    return {
        "type": "bind",
        "source": source,
        "target": target,
        "read_only": True,
        "bind": {"create_host_path": False},
    }
