"""The errors of the input side.

DataError
├── InputError            a folder, table, column or split that cannot be trained on
├── BadFilesError         files that cannot be decoded; holds them
└── MissingPackageError   an optional package that a choice needs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.verify import BadFile


class DataError(Exception):
    """Base class: the data given cannot be used as it is."""


class InputError(DataError):
    """A folder, table, column, label or split cannot be trained on."""


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
