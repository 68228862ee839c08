"""Packaging: the checkout's `training/` and `serving/` are installed inside `keras_bert_impl`."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOMS = ("training", "serving")
ROOT = Path(__file__).parent

packages = find_packages(include=["keras_bert_impl", "keras_bert_impl.*"])
for room in ROOMS:
    packages += [f"keras_bert_impl.{room}"]
    packages += [f"keras_bert_impl.{room}.{package}" for package in find_packages(room)]

version = re.search(r'^__version__ = "(.+)"$', (ROOT / "keras_bert_impl" / "__init__.py").read_text(), re.M)
assert version, "keras_bert_impl/__init__.py has no __version__"

extras = {
    "data": ["pyarrow"],
    "chinese": ["jieba~=0.42"],
    "beam": ["apache-beam~=2.77"],
    "finetune": ["scikit-learn", "scipy", "seqeval", "charset-normalizer"],
    "tuner": ["optuna"],
    "garden": ["tf-models-official~=2.20.0"],
    "serving": [
        "tensorflow-serving-api~=2.20.0",
        "grpcio",
        "starlette",
        "uvicorn",
        "httptools",
        "prometheus-client",
        "tenacity>=9",
    ],
    "jax": ["jax"],
    "tflite": ["ai-edge-litert", "ai-edge-quantizer"],
    "onnx": ["onnx", "onnxruntime"],
    "report": ["matplotlib", "jinja2", "tensorboard"],
    "gpu": ["tensorflow[and-cuda]~=2.20.0"],
    "dev": [
        "pytest",
        "pytest-xdist",
        "hypothesis",
        "httpx",
        # A client of TensorFlow Serving that others wrote.
        "ovmsclient",
        "ruff",
        "mypy",
        "types-PyYAML",
        "types-tqdm",
        "build",
        # With pkg_resources, which dependencies of the Model Garden still import.
        "setuptools>=77,<81",
        "wheel",
    ],
}

setup(
    name="keras-bert-impl",
    version=version[1],
    description="BERT for Keras on TensorFlow: from raw text to a served model",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11,<3.14",
    packages=packages,
    py_modules=["keras_bert_console"],
    package_dir={f"keras_bert_impl.{room}": room for room in ROOMS},
    package_data={
        "keras_bert_impl": ["py.typed"],
        "keras_bert_impl.attention_picture": ["*.html"],
        "keras_bert_impl.serving.server.playground": ["page/*"],
        "keras_bert_impl.tokenization": ["*.npz"],
        "keras_bert_impl.training": ["*.html"],
        "keras_bert_impl.training.finetuning": ["*.html"],
        "keras_bert_impl.training.recipes": ["*.yaml"],
    },
    install_requires=[
        "tensorflow~=2.20.0",
        "tensorflow-text~=2.20.0",
        "keras~=3.12",
        "keras-nlp~=0.32",
        "safetensors",
        "tokenizers",
        "jsonargparse[signatures]~=4.40",
        "pyyaml",
        "tqdm",
        "sentencex",
    ],
    extras_require=extras,
    entry_points={"console_scripts": ["keras-bert=keras_bert_console:main"]},
)
