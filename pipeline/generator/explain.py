"""The migration report: what a generator's settings really did in Keras, and what they do here, in plain sentences."""

from __future__ import annotations

import textwrap
import tokenize
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import InputError
from pipeline.generator.explain_calls import CONSTRUCTOR, REST, FlowCall, GeneratorCall
from pipeline.generator.explain_case import Case, Finding
from pipeline.generator.explain_flow import FLOW_RULES
from pipeline.generator.explain_images import IMAGE_RULES
from pipeline.generator.explain_normalise import NORMALISE_RULES
from pipeline.generator.explain_removed import explain_removed
from pipeline.generator.explain_source import read_source
from pipeline.generator.explain_values import Unknown, fold_expression
from pipeline.generator.settings import GeneratorSettings, make_settings

__all__ = [
    "ARGUMENT_FLAGS",
    "ArgumentFlag",
    "Finding",
    "explain_arguments",
    "explain_file",
    "explain_settings",
    "format_findings",
]

_WIDTH = 100
_NOTHING = "Nothing in these settings did anything else in Keras than it says."
_LABELS = ("Keras", "here", "keras_exact")
_INDENT = "  "
_GENERATOR_RULES = (*IMAGE_RULES, *NORMALISE_RULES)


class ArgumentFlag(NamedTuple):
    """A constructor argument as a flag of the command line.

    Attributes:
        flag: with its dashes.
        argument: the constructor's name for it.
        kind: `flag` has no value; `number`, `numbers` (a number, or several with commas), `pair` and `text` have one.
    """

    flag: str
    argument: str
    kind: str


def _flag(argument: str, kind: str) -> ArgumentFlag:
    return ArgumentFlag("--" + argument.replace("_", "-"), argument, kind)


ARGUMENT_FLAGS = (
    _flag("featurewise_center", "flag"),
    _flag("samplewise_center", "flag"),
    _flag("featurewise_std_normalization", "flag"),
    _flag("samplewise_std_normalization", "flag"),
    _flag("zca_whitening", "flag"),
    _flag("zca_epsilon", "number"),
    _flag("rotation_range", "number"),
    _flag("width_shift_range", "numbers"),
    _flag("height_shift_range", "numbers"),
    _flag("brightness_range", "pair"),
    _flag("shear_range", "number"),
    _flag("zoom_range", "numbers"),
    _flag("channel_shift_range", "number"),
    _flag("fill_mode", "text"),
    _flag("cval", "number"),
    _flag("horizontal_flip", "flag"),
    _flag("vertical_flip", "flag"),
    _flag("rescale", "number"),
    _flag("preprocessing_function", "text"),
    _flag("data_format", "text"),
    _flag("validation_split", "number"),
    _flag("interpolation_order", "number"),
    _flag("dtype", "text"),
)
_KINDS = {flag.argument: flag.kind for flag in ARGUMENT_FLAGS}
_FLAGS = {flag.argument: flag.flag for flag in ARGUMENT_FLAGS}


def explain_settings(settings: GeneratorSettings, *, flow: Mapping[str, Any] | None = None) -> tuple[Finding, ...]:
    """What applies to these settings.

    Args:
        settings: of the generator.
        flow: arguments of a flow method by name, and the method's own name under `method`; without it, sentences that
            depend on the flow say so.

    Returns:
        One a sentence or two, in the order in which things happen to an image, then to files, split and order.
    """
    case = Case(settings=settings, flow=flow)
    return _findings(case, (*_GENERATOR_RULES, *FLOW_RULES))


def explain_arguments(arguments: Mapping[str, Any]) -> str:
    """The report on arguments of the constructor.

    Args:
        arguments: values by name; text is read as the command line's flags are, so that "1/255" is a number.

    Returns:
        Text for a terminal, 100 columns wide.

    Raises:
        InputError: for an argument that there is not, a value that cannot be read, or what Keras refuses.
    """
    values = {name: _flag_value(name, value) for name, value in arguments.items()}
    try:
        settings = _settings(values)
    except (TypeError, ValueError) as error:
        raise InputError(_one_line(error)) from None
    return format_findings(explain_settings(settings))


def explain_file(path: str | Path) -> str:
    """The report on a Python file, which is parsed and never run.

    Returns:
        Text for a terminal, 100 columns wide: a section for each generator and flow, and what Keras 3 has no more.

    Raises:
        InputError: if the file is missing, not Python, or makes no ImageDataGenerator.
    """
    source = read_source(_read(path), str(path))
    told: set[Finding] = set()
    sections = [f"{path}: read, not run"]
    for generator in source.generators:
        sections += _sections(generator, told)
    sections += [_section(f"line {call.line}: {call.method}()", _NOT_A_GENERATOR) for call in source.strays]
    if source.removed:
        findings = [explain_removed(call) for call in source.removed]
        sections.append(_section("Not in Keras 3 any more", format_findings(findings)))
    return "\n\n".join(sections) + "\n"


def format_findings(findings: Iterable[Finding]) -> str:
    """Findings as text for a terminal, 100 columns wide."""
    return "\n\n".join(map(_format, findings)) or _NOTHING


_NOT_A_GENERATOR = "The file does not show which generator this is called on: see the generators above."
_CHAINED = "ImageDataGenerator(...)"
_TOLD = "Nothing that is not told above."


def _findings(case: Case, rules: Iterable[Any]) -> tuple[Finding, ...]:
    return tuple(finding for rule in rules for finding in rule(case))


def _format(finding: Finding) -> str:
    lines = textwrap.wrap(finding.setting, _WIDTH, subsequent_indent=_INDENT)
    for label, text in zip(_LABELS, (finding.keras, finding.ours, finding.exact), strict=True):
        if text:
            head = f"{_INDENT}{label}: ".ljust(len(_INDENT) + len(max(_LABELS, key=len)) + 2)
            lines += textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
    return "\n".join(lines)


# -- a file


def _read(path: str | Path) -> str:
    try:
        with tokenize.open(path) as file:  # in the encoding that the file declares
            return file.read()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (SyntaxError, UnicodeError) as error:
        raise InputError(f"{path}: is not Python: {_one_line(error)}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _section(title: str, text: str) -> str:
    return f"{title}\n{'-' * min(len(title), _WIDTH)}\n{text}"


def _sections(generator: GeneratorCall, told: set[Finding]) -> list[str]:
    """A generator's section and one for each of its flows; a flow leaves out what was told before."""
    title = f"line {generator.line}: {generator.name + ' = ' if generator.name else ''}ImageDataGenerator(...)"
    unknown = {name: value for name, value in generator.arguments.items() if isinstance(value, Unknown)}
    known = {
        name: value
        for name, value in generator.arguments.items()
        if name not in unknown or name == "preprocessing_function"
    }
    try:
        settings = _settings(known)
    except (TypeError, ValueError) as error:
        return [_section(title, f"These arguments are refused: {_one_line(error)}")]
    cases = [_case(settings, flow, frozenset(unknown), generator.is_fitted) for flow in generator.flows or (None,)]
    found = list(dict.fromkeys(finding for case in cases for finding in _findings(case, _GENERATOR_RULES)))
    sections = [_section(title, _with_unknown(unknown, format_findings(found)))]
    for flow, case in zip(generator.flows, cases, strict=False):
        new = [finding for finding in _findings(case, FLOW_RULES) if finding not in told]
        told.update(new)
        not_known = {name: value for name, value in flow.arguments.items() if isinstance(value, Unknown)}
        text = _with_unknown(not_known, format_findings(new) if new else _TOLD)
        sections.append(_section(f"line {flow.line}: {generator.name or _CHAINED}.{flow.method}(...)", text))
    return sections


def _case(settings: GeneratorSettings, flow: FlowCall | None, unknown: frozenset[str], is_fitted: bool) -> Case:
    arguments = None if flow is None else {"method": flow.method, **flow.arguments}
    return Case(settings=settings, flow=arguments, unknown=unknown, is_fitted=is_fitted)


def _with_unknown(unknown: Mapping[str, Unknown], text: str) -> str:
    if not unknown:
        return text
    names = ", ".join(value.text if name == REST else f"{name}={value.text}" for name, value in unknown.items())
    names = " ".join(names.split())
    return textwrap.fill(f"Not known from the file: {names}", _WIDTH, subsequent_indent=_INDENT) + f"\n\n{text}"


# -- arguments

_NUMBERS = tuple(flag.argument for flag in ARGUMENT_FLAGS if flag.kind == "number")


def _settings(arguments: Mapping[str, Any]) -> GeneratorSettings:
    for name, value in arguments.items():
        if name not in (*CONSTRUCTOR, "keras_exact"):
            raise TypeError(f"ImageDataGenerator has no argument {name!r}")
        if name in _NUMBERS and not isinstance(value, int | float | None):
            raise TypeError(f"{name}={value!r} is no number")
        if name in ("width_shift_range", "height_shift_range") and not _are_numbers(value):
            raise TypeError(f"{name}={value!r} is neither a number nor a list of numbers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report says it
        return make_settings(**arguments)


def _are_numbers(value: Any) -> bool:
    values = value if isinstance(value, tuple | list) else [value]
    return all(isinstance(one, int | float | None) for one in values)


def _flag_value(name: str, value: Any) -> Any:
    """What a flag's text means; other values stay as they are."""
    kind = _KINDS.get(name, "text")
    if not isinstance(value, str) or kind == "text":
        return Unknown(value) if name == "preprocessing_function" and isinstance(value, str) else value
    found = fold_expression(value)
    counts = {"number": (1,), "numbers": range(1, 1000), "pair": (2,)}.get(kind, ())
    parts = found if isinstance(found, tuple | list) else [found]
    if len(parts) not in counts or not all(isinstance(part, int | float) for part in parts):
        wanted = {"number": "a number", "numbers": "a number, or several with commas"}.get(
            kind, "two numbers as in 0.5,1.5"
        )
        raise InputError(f"{_FLAGS[name]}: {value!r} is not {wanted}")
    return found


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
