from keras_bert_impl.training.corpus.docstrings import docstrings

SOURCE = b'''
"""Of the module."""
import not_there

if True:
    class Thing:
        """Of the class."""

        async def run(self):
            """Of the method."""
            text = """Not a docstring."""

            def inner():
                """Of an inner function."""

add_newdoc("place", "name", """Attached later.""")
add_newdoc("place", "Thing", ("run", """Attached to a method."""))
print("""Not attached to anything.""")
'''


def test_docstrings_come_in_the_order_of_the_file():
    assert list(docstrings(SOURCE)) == [
        "Of the module.",
        "Of the class.",
        "Of the method.",
        "Of an inner function.",
        "Attached later.",
        "Attached to a method.",
    ]


def test_the_topics_of_pydoc_are_texts():
    assert list(docstrings(b"topics = {'a': 'One.' 'Two.', 'b': 'Three.'}")) == ["One.Two.", "Three."]


def test_source_that_cannot_be_parsed_gives_nothing():
    assert list(docstrings(b'"""Text."""\nprint "old"\n')) == []
    assert list(docstrings(b'"""Text."""\n\x00')) == []


def test_odd_escapes_warn_nobody(recwarn):
    assert list(docstrings(b'"""A \\d in the text."""')) == ["A \\d in the text."]
    assert not recwarn
