"""The errors of the input side.

DataError
├── InputError            a folder, table, column or split that cannot be trained on
├── BadFilesError         files that cannot be decoded; holds them
└── MissingPackageError   an optional package that a choice needs
"""

from __future__ import annotations

from dataclasses import dataclass


class DataError(Exception):
    """Base class: the data given cannot be used as it is."""


class InputError(DataError):
    """A folder, table, column, label or split cannot be trained on."""


@dataclass(frozen=True, kw_only=True)
class BadFile:
    """A file that cannot be used.

    Attributes:
        path: absolute.
        reason: what is wrong, in words that follow the path: "is empty".
    """

    path: str
    reason: str


class BadFilesError(DataError):
    """Some files cannot be decoded.

    Attributes:
        bad_files: all of them, in the order of the samples.
    """

    def __init__(self, message: str, bad_files: tuple[BadFile, ...]) -> None:
        super().__init__(message)
        self.bad_files = bad_files


class MissingPackageError(DataError):
    """A choice needs an optional package that cannot be imported."""
