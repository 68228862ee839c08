import textwrap

import pytest

from keras_bert_impl.training.corpus.prose import prose_paragraphs


def prose(text: str) -> list[str]:
    return prose_paragraphs(textwrap.dedent(text))


def test_wrapped_lines_become_one_paragraph():
    assert prose(
        """Return the first line of the text, and
        nothing else that comes after it.

        The second paragraph stands by itself
        on two lines."""
    ) == [
        "Return the first line of the text, and nothing else that comes after it.",
        "The second paragraph stands by itself on two lines.",
    ]


def test_sessions_fences_and_literal_blocks_go():
    found = prose(
        """
        This function adds two numbers to one another.

        >>> add(1, 2)
        3
        still output of the session here

        It can be used in the shell as well::

            add 1 2
            the result of it is 3

        ```python
        the_code = of(the, fence)
        ```
        And this is the end of it all.
        """
    )
    assert found == ["This function adds two numbers to one another.", "And this is the end of it all."]


def test_a_sentence_that_led_up_to_code_goes_with_it():
    found = prose(
        """
        The value is kept for later. The following prints it for all to see:

        ```
        print(value)
        ```
        """
    )
    assert found == ["The value is kept for later."]


def test_numpy_sections_are_reduced_to_their_sentences():
    found = prose(
        """
        Return the mean of the values.

        Parameters
        ----------
        values : array_like, shape (n,)
            The numbers that the mean is taken of.
        axis
            The axis along which it is taken.

        See Also
        --------
        median : The middle value of them all in order.

        Notes
        -----
        The mean of nothing is not a number.

        References
        ----------
        .. [1] A. Author, "A book of the means".
        """
    )
    assert found == [
        "Return the mean of the values.",
        "The numbers that the mean is taken of.",
        "The axis along which it is taken.",
        "The mean of nothing is not a number.",
    ]


def test_google_sections_are_reduced_to_their_sentences():
    found = prose(
        """
        Computes the loss of the given batch.

        Args:
            labels: `Tensor`. The true classes, one of them
                for every example.
            weights (optional): How much each of the examples counts.
            name: A string.

        Returns:
            The mean loss over all of the examples.
        """
    )
    assert found == [
        "Computes the loss of the given batch.",
        "Tensor. The true classes, one of them for every example.",
        "How much each of the examples counts.",
        "The mean loss over all of the examples.",
    ]


def test_rest_fields_are_reduced_to_their_sentences():
    found = prose(
        """
        Send the request to the server.

        :param url: The address that it is sent to.
        :type url: str
        :returns: What the server said to it.
        :rtype: the type of the answer that came
        """
    )
    assert found == [
        "Send the request to the server.",
        "The address that it is sent to.",
        "What the server said to it.",
    ]


def test_directives_go_and_admonitions_stay():
    found = prose(
        """
        .. currentmodule:: a module with a name

        .. note:: This is worth a line of its own.

        .. plot::

           the code of the plot is not prose

        .. a comment that nobody is to read here

        It is the last paragraph of the text.
        """
    )
    assert found == ["This is worth a line of its own.", "It is the last paragraph of the text."]


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("See the ``name`` of `other` in *all* of **them**.", "See the name of other in all of them."),
        ("Use :func:`~package.module.run` or :class:`Thing` for that.", "Use run or Thing for that."),
        ("It is in [the guide](https://example.org/a_(b)) for users.", "It is in the guide for users."),
        ("It is in `the guide <https://example.org>`_ for the users.", "It is in the guide for the users."),
        ("The method of the book [1]_ is used in here.", "The method of the book is used in here."),
        ("It is in :ref:`the guide <guide>` for the users.", "It is in the guide for the users."),
        ("(str or None) The name of the thing to open.", "The name of the thing to open."),
        ("Set it with a_name_of_mine and go on from there.", "Set it with a_name_of_mine and go on from there."),
        ("a sentence without an end is given one", "A sentence without an end is given one."),
    ],
)
def test_markup_goes_and_its_words_stay(marked: str, plain: str):
    assert prose(marked) == [plain]


def test_list_items_are_paragraphs_without_their_marks():
    assert prose(
        """
        - the first of the items in the list
        - the second of them, which is
          longer than a line
        1. a numbered one that comes at the end
        """
    ) == [
        "The first of the items in the list.",
        "The second of them, which is longer than a line.",
        "A numbered one that comes at the end.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "run(name, *args) -> result",
        "x = y[0] + z(1) for the {a: b}",
        "====  ====\nthe   a\n====  ====",
        "| the | table | of | the | things |",
        "+----+----+\n| of | is |",
        "one two three",
        "Alpha Beta Gamma Delta Epsilon Zeta Eta",
    ],
)
def test_what_is_not_prose_goes(text: str):
    assert prose(text) == []
