"""kubernetes.yaml and Dockerfile: the server with one version of the model in its image, on a cluster."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from .compose import GRPC_PORT, REST_PORT
from .exported import Exported
from .server_config import BATCHES_AT_ONCE, METRICS_PATH, model_path, server_arguments

FILE, DOCKERFILE = "kubernetes.yaml", "Dockerfile"

_HEADING = """\
# An example for a cluster: the server's files, the server, and its address within the cluster.
# {image} is the image that the Dockerfile beside this one makes; name it as your registry does.
# The memory is an estimate; README.md says how it comes about.
"""
# Attempts and seconds between them that a version may take to load and to warm up.
_START_ATTEMPTS, _START_SECONDS = 120, 5


def dockerfile(export: Exported, model_name: str, image: str) -> str:
    """Returns a Dockerfile whose context is the export."""
    return f"""\
# The server with one version of the model; its context is the directory of versions:
#     docker build --file Dockerfile --tag {model_image(export, model_name)} EXPORT_DIR
FROM {image}
COPY {export.version} {model_path(model_name)}/{export.version}
"""


def model_image(export: Exported, model_name: str) -> str:
    """Returns the name of the image with the model: its tag is the version."""
    return f"{object_name(model_name)}:{export.version}"


def object_name(model_name: str) -> str:
    """Returns a model's name as Kubernetes takes names: lower case, digits and single hyphens."""
    return re.sub("[^a-z0-9]+", "-", model_name.lower()).strip("-")[:50].strip("-") or "model"


def kubernetes_file(export: Exported, model_name: str, config_files: Mapping[str, str]) -> str:
    """Returns a ConfigMap of the server's files, a Deployment and a Service."""
    name, image = object_name(model_name), model_image(export, model_name)
    labels = {"app": name}
    container: dict[str, Any] = {
        "name": "tensorflow-serving",
        "image": image,
        "args": server_arguments("/config"),
        "ports": [{"name": "grpc", "containerPort": GRPC_PORT}, {"name": "rest", "containerPort": REST_PORT}],
        "volumeMounts": [{"name": "config", "mountPath": "/config", "readOnly": True}],
        # The port is opened when the first version has been loaded and warmed up.
        "startupProbe": {**_status(model_name), "periodSeconds": _START_SECONDS, "failureThreshold": _START_ATTEMPTS},
        "readinessProbe": {**_status(model_name), "periodSeconds": 5, "timeoutSeconds": 5},
        # Not the status: a server that is only busy must not be restarted.
        "livenessProbe": {"tcpSocket": {"port": "grpc"}, "periodSeconds": 10, "failureThreshold": 6},
        # It is taken out of the service before it is ended, so that no request is on its way to it then.
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", "15"]}}},
        "resources": {
            "requests": {"cpu": str(BATCHES_AT_ONCE), "memory": f"{export.waiting_mib}Mi"},
            "limits": {"memory": f"{export.busy_mib(BATCHES_AT_ONCE)}Mi"},
        },
    }
    scraped = {"prometheus.io/scrape": "true", "prometheus.io/port": str(REST_PORT), "prometheus.io/path": METRICS_PATH}
    pod = {
        "metadata": {"labels": labels, "annotations": scraped},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 60,
            "containers": [container],
            "volumes": [{"name": "config", "configMap": {"name": name}}],
        },
    }
    documents = [
        _object("v1", "ConfigMap", name, data=dict(config_files)),
        _object(
            "apps/v1",
            "Deployment",
            name,
            spec={"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
        ),
        _object(
            "v1",
            "Service",
            name,
            spec={
                "selector": labels,
                "ports": [
                    {"name": "grpc", "port": GRPC_PORT, "targetPort": "grpc"},
                    {"name": "rest", "port": REST_PORT, "targetPort": "rest"},
                ],
            },
        ),
    ]
    return _HEADING.format(image=image) + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=1000)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they stand, and every part in full."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def _object(api_version: str, kind: str, name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}


def _status(model_name: str) -> dict[str, Any]:
    return {"httpGet": {"path": f"/v1/models/{model_name}", "port": "rest"}}
