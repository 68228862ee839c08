"""A version that is gone leaves nothing behind."""

import gc
import weakref

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
