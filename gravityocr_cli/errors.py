"""Every way a run can fail that a user should read about, each with its exit code.

One class per fault, so that each fault has its own sentence and scripts can tell them apart by code.
"""


class GravityOcrError(Exception):
    """The base: an error with one clear line. `exit_code` is what the process ends with."""

    exit_code = 1

    def __reduce__(self) -> "tuple[object, ...]":
        return _restored, (type(self), str(self))  # subclasses take other arguments than their message


def _restored(kind: type[GravityOcrError], message: str) -> GravityOcrError:
    """The error as it was before it crossed from one process to another."""
    error = kind.__new__(kind)
    error.args = (message,)
    return error


def reason_of(error: OSError) -> str:
    """What the system says of a fault, as the end of a sentence."""
    return (error.strerror or str(error)).lower()


class UsageError(GravityOcrError):
    """A value on the command line that makes no sense."""

    exit_code = 2


class InputError(GravityOcrError):
    """The input cannot be read."""

    exit_code = 3


class MissingInput(InputError):
    def __init__(self, path: object) -> None:
        super().__init__(f"{path}: no such file")


class EmptyInput(InputError):
    def __init__(self, path: object) -> None:
        super().__init__(f"{path}: the file is empty (0 bytes)")


class NotADocument(InputError):
    def __init__(self, path: object) -> None:
        super().__init__(f"{path}: neither a PDF nor an image that can be read")


class DamagedInput(InputError):
    def __init__(self, path: object) -> None:
        super().__init__(f"{path}: the PDF is truncated or damaged beyond repair")


class NoPages(InputError):
    def __init__(self, path: object) -> None:
        super().__init__(f"{path}: the document has no pages")


class InputTooLarge(InputError):
    def __init__(self, path: object, size: int, limit: int) -> None:
        super().__init__(f"{path}: too large ({size / 2**20:.0f} MiB, the limit is {limit / 2**20:.0f} MiB)")


class TooManyPixels(InputError):
    def __init__(self, path: object) -> None:
        super().__init__(f"{path}: the image has more pixels than any page needs")


class CrashedOnInput(InputError):
    def __init__(self, path: object, how: str) -> None:
        super().__init__(f"{path}: the file cannot be opened: the process that tried {how}")


class PasswordNeeded(GravityOcrError):
    exit_code = 4

    def __init__(self, path: object) -> None:
        super().__init__(
            f"{path}: encrypted; give its password with GRAVITYOCR_PASSWORD, --password-file or --password"
        )


class WrongPassword(GravityOcrError):
    exit_code = 4

    def __init__(self, path: object) -> None:
        super().__init__(f"{path}: encrypted, and the password given does not open it")


class CannotWrite(GravityOcrError):
    exit_code = 5

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{path}: cannot write the output ({reason})")


class ModelError(GravityOcrError):
    """The model is missing or its files are broken."""

    exit_code = 6


class TimeLimit(GravityOcrError):
    """A document took longer than it may."""

    exit_code = 9


class ConfigError(GravityOcrError):
    """A configuration file or an environment variable that makes no sense."""

    exit_code = 10


PARTIAL = 7
"""Exit code: the output is there, but some page or region is lost."""

SOME_FAILED = 8
"""Exit code: several inputs, and some of them failed."""

INTERRUPTED = 130
TERMINATED = 143
