"""The configuration files of TensorFlow Serving, as text of its protocol buffers."""

from .exported import Exported

MODELS, BATCHING, MONITORING = "models.config", "batching_parameters.config", "monitoring.config"

METRICS_PATH = "/monitoring/prometheus/metrics"
BATCHES_AT_ONCE = 2
_WAITING_BATCHES = 16


def model_path(model_name: str) -> str:
    """Returns where the versions lie in the container."""
    return f"/models/{model_name}"


def models_config(model_name: str) -> str:
    """Returns a `tensorflow.serving.ModelServerConfig`: one model, of which the highest version is served."""
    return f"""\
model_config_list {{
  config {{
    name: "{model_name}"
    base_path: "{model_path(model_name)}"
    model_platform: "tensorflow"
  }}
}}
"""


def batching_parameters(export: Exported) -> str:
    """Returns a `tensorflow.serving.BatchingParameters` for the export."""
    return f"""\
# Requests that wait are joined into one run of at most so many rows, as many as the export was proved with. A single
# request of more rows is refused. Not fewer: the warm-up requests have as many, and the version would not load.
max_batch_size {{ value: {export.max_rows} }}
# Nobody is held back: what came while others were computed is joined. On a GPU try 1000 to 10000.
batch_timeout_micros {{ value: 0 }}
# Runs at once, for all models. More need more memory, and share the same cores.
num_batch_threads {{ value: {BATCHES_AT_ONCE} }}
# Full batches that may wait, for each signature; then requests are refused with UNAVAILABLE.
max_enqueued_batches {{ value: {_WAITING_BATCHES} }}
# Left out on purpose. pad_variable_length_inputs fills ids and words up with their first value, not with padding: the
# answers would be wrong without an error. allowed_batch_sizes fills batches up with copies of a row, which cost time.
"""


def monitoring_config() -> str:
    """Returns a `tensorflow.serving.MonitoringConfig` with metrics for Prometheus."""
    return f"""\
prometheus_config {{
  enable: true
  path: "{METRICS_PATH}"
}}
"""


def server_arguments(folder: str) -> list[str]:
    """Returns the server's arguments when the files lie in a folder of its container."""
    return [
        f"--model_config_file={folder}/{MODELS}",
        "--enable_batching=true",
        f"--batching_parameters_file={folder}/{BATCHING}",
        f"--monitoring_config_file={folder}/{MONITORING}",
    ]
