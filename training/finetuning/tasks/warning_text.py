"""What evaluations and seeds warn of, in the same words for every task."""

from ...corpus.wording import counted


def may_help(*further: str) -> str:
    """Returns a sentence on what to try when a model has not learned."""
    remedies = ["More epochs", "another learning rate (small models often need 1e-4 or 3e-4)", *further]
    return f"{', '.join(remedies[:-1])} or {remedies[-1]} may help."


def collapsed(what_it_gives: str, *further: str) -> str:
    """Returns the warning that a model gives one answer alone.

    Args:
        what_it_gives: such as `"'good' for all 3 examples"`.
        further: what else may help.
    """
    return f"The model gives {what_it_gives}: it has collapsed, or not learned yet. " + may_help(
        "another seed", *further
    )


def unknown_names(noun: str, names: int, named: str, things: str, count: int, done: str) -> str:
    """Returns the warning that examples have labels or tags that the model does not know.

    Args:
        noun: `"label"` or `"tag"`.
        names: how many different ones there are.
        named: the names themselves.
        things: what has them, such as `"example"`.
        count: how many have them.
        done: what is done with these all the same, such as `"predicted"`.
    """
    return (
        f"{counted(names, noun)} of these examples {'is' if names == 1 else 'are'} not of the model's, which were "
        f"found in its training data: {named}. {counted(count, things)} with {'it' if names == 1 else 'them'} "
        f"{'is' if count == 1 else 'are'} {done} and counted as wrong."
    )
