"""A version that is gone leaves nothing behind."""

import gc
import json
import shutil
import subprocess
import sys
import weakref

import pytest
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from keras_bert_impl.serving.server.models.load_error import LoadError
from keras_bert_impl.serving.server.models.servable import Servable


def test_the_graph_goes_with_its_version(small_export):
    gc.disable()  # in a server it comes too late: what a graph holds is not counted as Python's
    try:
        servable = Servable(small_export / "3")
        graph = weakref.ref(servable._graph)
        servable.close()
        del servable
        assert graph() is None
    finally:
        gc.enable()


def test_operations_of_tensorflow_text_are_there_in_a_process_that_has_not_imported_it(small_export, tmp_path):
    version = _with_operation(small_export, tmp_path, "FastWordpieceTokenizeWithOffsets")
    assert _loaded_elsewhere(version, block="") == ""


def test_without_tensorflow_text_the_refusal_names_operation_and_package(small_export, tmp_path):
    version = _with_operation(small_export, tmp_path, "FastWordpieceTokenizeWithOffsets")
    assert _loaded_elsewhere(version, block="tensorflow_text") == (
        f"The SavedModel in {str(version)!r} needs these operations: FastWordpieceTokenizeWithOffsets; "
        "tensorflow-text, where they may be, is not installed"
    )


def test_an_operation_of_nobody_is_named(small_export, tmp_path):
    version = _with_operation(small_export, tmp_path, "NobodysOperation")
    with pytest.raises(LoadError) as refused:
        Servable(version)
    assert refused.value.reason == (
        "The SavedModel needs these operations: NobodysOperation; neither TensorFlow nor tensorflow-text has them"
    )
    assert refused.value.code == "NOT_FOUND"


def _with_operation(export, folder, operation):
    """Returns a copy of an export that has the operation in a function which nothing calls."""
    version = folder / "exports" / "3"
    shutil.copytree(export / "3", version)
    file = version / "saved_model.pb"
    saved_model = SavedModel.FromString(file.read_bytes())
    function = saved_model.meta_graphs[0].graph_def.library.function.add()
    function.signature.name = "never_called"
    function.node_def.add(name="it", op=operation)
    file.write_bytes(saved_model.SerializeToString())
    return version


def _loaded_elsewhere(version, block):
    """Loads the version in a process of its own, where a package cannot be imported; returns the refusal."""
    script = """
import json, sys
from pathlib import Path
if sys.argv[2]:
    sys.modules[sys.argv[2]] = None
from keras_bert_impl.serving.server.models.load_error import LoadError
from keras_bert_impl.serving.server.models.servable import Servable
said = ""
try:
    Servable(Path(sys.argv[1])).close()
except LoadError as error:
    said = str(error)
print(json.dumps(said))
"""
    done = subprocess.run([sys.executable, "-c", script, version, block], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
