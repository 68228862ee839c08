"""The one exception that means: the user can mend this."""


class InputError(ValueError):
    """What the user gave cannot be used.

    The message is one plain sentence that names the argument, the rule and what came. The command
    line prints it without a traceback and exits with code 2; from Python it is an ordinary
    `ValueError`.
    """
