"""What a generator's arguments do to the levels after augmentation, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.generator.explain_case import Case, Finding
from pipeline.generator.explain_values import Unknown

__all__ = ["NORMALISE_RULES"]

_SAME = "The same."


def _name(function: Any) -> str:
    if isinstance(function, Unknown):
        return function.text
    return getattr(function, "__qualname__", type(function).__name__)


def _function(case: Case) -> Iterator[Finding]:
    function, rescale = case.settings.preprocessing_function, case.settings.rescale
    if function is None:
        return
    keras = "Ran on one image after the other, after augmentation, on float levels as they come from the file or array."
    ours = (
        "The same place and levels. A preprocess_input of keras.applications runs compiled on the whole batch; any "
        "other function stays Python, image by image, and sets the pace."
    )
    yield Finding(f"preprocessing_function={_name(function)}", keras, ours)
    if rescale:
        keras = (
            "Both were applied: the function first, then its result was multiplied by rescale. A function that gives "
            f"-1 to 1 left values from {-abs(rescale):.2g} to {abs(rescale):.2g}."
        )
        setting = f"preprocessing_function={_name(function)}, rescale={rescale:.6g}"
        yield Finding(setting, keras, "The same; give only one of the two unless both are meant.")


def _samplewise(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if not settings.samplewise_center:
        return
    divided = " and divided by their deviation + 1e-6" if settings.samplewise_std_normalization else ""
    keras = (
        f"Each image had the mean of all its values subtracted{divided}, all channels together and with the pixels "
        "that augmentation filled in."
    )
    name = "samplewise_std_normalization" if settings.samplewise_std_normalization else "samplewise_center"
    yield Finding(f"{name}=True", keras, _SAME)


def _featurewise(case: Case) -> Iterator[Finding]:
    settings = case.settings
    names = ("featurewise_center", "featurewise_std_normalization", "zca_whitening")
    on = [f"{name}=True" for name in names if getattr(settings, name)]
    if not on:
        return
    keras = "Needs the generator's fit(images) first; without it Keras warned and changed nothing."
    if case.is_fitted is False:
        keras += " The file shows no fit of this generator: unless it sets mean and std itself, nothing was normalised."
    if settings.preprocessing_function is not None:
        keras += " fit left preprocessing_function out; its statistics were then applied after it, to other levels."
    yield Finding(", ".join(on), keras, _SAME)


def _zca(case: Case) -> Iterator[Finding]:
    if case.settings.zca_whitening:
        keras = (
            "Whitening switched featurewise_center on and featurewise_std_normalization off. Its matrix has (height "
            "x width x channels) squared numbers: 64 x 64 x 3 needs 1.2 GB in float64 while it is made."
        )
        yield Finding(f"zca_whitening=True, zca_epsilon={case.settings.zca_epsilon:g}", keras, _SAME)


def _whole_numbers(case: Case) -> Iterator[Finding]:
    dtype = case.settings.dtype
    if "int" not in str(dtype):
        return
    keras = "The finished values were cut down to whole numbers."
    if case.settings.rescale and abs(case.settings.rescale) < 1 / 250 and case.may_be_files:
        keras += f" After rescale={case.settings.rescale:.6g} next to nothing but 0 was left of images from files."
    if case.settings.rescale and case.may_be_arrays:
        keras += " Arrays of this dtype could not be multiplied by rescale: numpy refused to cast."
    yield Finding(f"dtype={dtype}", keras, _SAME)


NORMALISE_RULES = (_function, _samplewise, _featurewise, _zca, _whole_numbers)
