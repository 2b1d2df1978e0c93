"""What the arguments of a flow method do, in sentences: files, labels, split, order, seed."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.generator.explain_calls import FLOW_METHODS, REST
from pipeline.generator.explain_case import Case, Finding

__all__ = ["FLOW_RULES"]

_SAME = "The same."
_AS_KERAS = "As Keras."
_DIRECTORY, _DATAFRAME, _ARRAYS = "flow_from_directory", "flow_from_dataframe", "flow"
_OLD_KEYWORDS = ("has_ext", "sort", "drop_duplicates")
_OUR_KEYWORDS = ("keep_aspect_ratio", "cache", "prefetch", "parallel", "decode", "stratify")


def _which_validation(case: Case) -> Iterator[Finding]:
    split = case.settings.validation_split
    if not split or (case.method and case.leaves_out("subset")):
        return
    setting = f"validation_split={split:g}"
    if case.method in (None, _DIRECTORY):
        keras = (
            f"Files below a directory: of each class the first files by name became the validation set, {split:g} of "
            "them rounded down; nothing was shuffled before."
        )
        yield Finding(setting, keras, _SAME)
    if case.method in (None, _DATAFRAME):
        keras = (
            f"Rows of a dataframe: its head, the first {split:g} of the usable rows, became the validation set as it "
            "stood, neither shuffled nor stratified. A frame sorted by class gave classes that only one part has."
        )
        ours = (
            "The same, with a warning if the classes' shares differ; stratify=True takes the same share of each class."
        )
        yield Finding(setting, keras, ours, "The head of the frame, as Keras.")
    if case.method in (None, _ARRAYS):
        keras = (
            f"Arrays: the first {split:g} of the samples became the validation set, not shuffled; it was an error if "
            "both parts did not hold the same labels, unless ignore_class_split=True."
        )
        yield Finding(setting, keras, _SAME)


def _no_subset(case: Case) -> Iterator[Finding]:
    if case.settings.validation_split and case.leaves_out("subset"):
        keras = "Without subset= the split did nothing: this flow took all images, those meant for validation as well."
        yield Finding(f"validation_split={case.settings.validation_split:g}", keras, _SAME)


def _no_split(case: Case) -> Iterator[Finding]:
    subset = case.given("subset")
    if subset not in ("training", "validation") or case.settings.validation_split or not case.knows("validation_split"):
        return
    setting = f"subset={subset!r}"
    if subset == "training":
        yield Finding(setting, "Without a validation_split the training subset was everything.", _SAME)
        return
    ours = "An error: there is no image." if case.method != _ARRAYS else _SAME
    exact = None if case.method == _ARRAYS else "No image, as Keras."
    yield Finding(setting, "Without a validation_split the validation subset had no image at all.", ours, exact)


def _validation_augmented(case: Case) -> Iterator[Finding]:
    subset = case.given("subset")
    is_possible = case.flow is None and case.settings.validation_split
    if not case.settings.changes_images or not (subset == "validation" or is_possible):
        return
    keras = (
        "The validation subset was augmented exactly like the training subset, since both came from one generator: "
        "validation figures were those of distorted images."
    )
    yield Finding("subset='validation'", keras, "Validation images are not augmented.", "Augmented, as Keras.")


def _weights(case: Case) -> Iterator[Finding]:
    if case.method != _ARRAYS or case.leaves_out("sample_weight") or case.leaves_out("subset"):
        return
    if "sample_weight" not in case.flow or "subset" not in case.flow:
        return
    if case.flow["sample_weight"] is None or case.given("subset") == "validation" or not case.settings.validation_split:
        return  # the validation subset starts at row 0, as the weights do
    keras = "Weights were not cut with the subset: training samples got those of the first rows, meant for validation."
    yield Finding("sample_weight=, subset=", keras, "Each sample keeps its own weight.", _AS_KERAS)


def _files(case: Case) -> Iterator[Finding]:
    if case.method not in (_DIRECTORY, _DATAFRAME):
        return
    where = "files" if case.method == _DIRECTORY else "rows of the dataframe"
    if case.method == _DIRECTORY or case.leaves_out("validate_filenames") or case.given("validate_filenames"):
        keras = f"GIF and WebP {where} were left out" + (
            " without a word." if case.method == _DIRECTORY else ", as invalid."
        )
        yield Finding(case.method, keras, "They are read.", "Left out, as Keras.")
    mode = "grayscale" if case.given("color_mode") == "grayscale" else "rgb"
    keras = (
        "Grey files of 16 bits kept levels up to 65535."
        if mode == "grayscale"
        else "Grey files of 16 bits came out white wherever their level was above 255."
    )
    if case.leaves_out("color_mode") or case.given("color_mode"):
        yield Finding(f"color_mode={case.given('color_mode') or 'rgb'!r}", keras, "Scaled to 8 bits.", _AS_KERAS)


def _no_images(case: Case) -> Iterator[Finding]:
    if case.method not in (_DIRECTORY, _DATAFRAME):
        return
    what = "A folder" if case.method == _DIRECTORY else "A dataframe"
    keras = f'{what} without a single usable image was no error here ("Found 0 ..."); only fit failed.'
    ours = "An error at once, with counts and the first five paths."
    yield Finding(case.method, keras, ours, _AS_KERAS)


def _folders(case: Case) -> Iterator[Finding]:
    if case.method != _DIRECTORY:
        return
    if case.leaves_out("classes") or ("classes" in case.flow and not case.flow["classes"]):
        keras = "Every sub-folder was a class, empty ones and hidden ones such as .ipynb_checkpoints as well."
        yield Finding("classes=None", keras, "Empty and hidden folders are left out; a line says so.", _AS_KERAS)
    elif case.given("classes"):
        keras = "A class whose folder is missing was no error: it had no images."
        yield Finding(f"classes={case.given('classes')!r}", keras, _SAME)


def _binary(case: Case) -> Iterator[Finding]:
    if case.method == _DIRECTORY and case.given("class_mode") == "binary":
        keras = "Nobody checked that there are two classes: a third one got the label 2."
        yield Finding("class_mode='binary'", keras, "Other than two classes are an error.", _AS_KERAS)


def _text_labels(case: Case) -> Iterator[Finding]:
    if case.method != _DATAFRAME:
        return
    mode = "categorical" if case.leaves_out("class_mode") else case.given("class_mode")
    if mode in ("binary", "sparse", "categorical"):
        keras = "Labels had to be text: a column of 0 and 1, or of True and False, was refused."
        yield Finding(f"class_mode={mode!r}", keras, "Whole numbers and booleans are taken by their names.", _AS_KERAS)
    elif mode == "other":
        yield Finding("class_mode='other'", "The old name of 'raw', with a DeprecationWarning.", _SAME)


def _keywords(case: Case) -> Iterator[Finding]:
    if case.method != _DATAFRAME:
        return
    for name in case.flow:
        if name in _OLD_KEYWORDS:
            yield Finding(f"{name}=", "Nothing, with a DeprecationWarning.", _SAME)
        elif name == "keep_aspect_ratio" and case.flow[name]:
            yield Finding(
                f"{name}=True", "Nothing: flow_from_dataframe ignored it.", "It is followed.", "Ignored, as Keras."
            )
        elif name not in (*FLOW_METHODS[_DATAFRAME], *_OUR_KEYWORDS, "method", REST):
            yield Finding(
                f"{name}=", "Nothing: unknown keywords were swallowed.", "A TypeError.", "Swallowed, as Keras."
            )


def _size(case: Case) -> Iterator[Finding]:
    if case.method not in (_DIRECTORY, _DATAFRAME) or case.size is None:
        return
    if case.leaves_out("target_size"):
        yield Finding("target_size=(256, 256)", "Not given: all images were resized to 256 x 256.", _SAME)
    elif not case.is_square:
        keras = f"Height {case.size[0]}, width {case.size[1]}: the height comes first."
        yield Finding(f"target_size={case.size}", keras, _SAME)
    if case.leaves_out("interpolation") or case.given("interpolation") == "nearest":
        keras = (
            "Not averaged: each pixel of the resized image is one pixel of the file, so that shrunk photos are "
            "jagged. 'bilinear' and the others average."
        )
        yield Finding("interpolation='nearest'", keras, _SAME)


def _seed(case: Case) -> Iterator[Finding]:
    if case.flow is None or not case.method or REST in case.flow:
        return
    ours = "Order and draws are a function of seed, epoch and image; numpy's global random numbers are never touched."
    if case.flow.get("seed") is not None:
        keras = (
            "Before each batch numpy's global generator was set to seed + number of batches served, so that every "
            "other use of numpy.random in the program repeated itself too, and the numbers depended on the batches "
            "taken before."
        )
        yield Finding(f"seed={case.flow['seed']!r}", keras, ours)
    elif case.settings.changes_images or case.leaves_out("shuffle") or case.given("shuffle"):
        keras = "Order and draws came from numpy's global generator, which numpy.random.seed() made repeatable."
        yield Finding("seed=None", keras, "numpy.random.seed() does nothing here; give seed= to repeat a run.")


def _order(case: Case) -> Iterator[Finding]:
    if not case.method:
        return
    if case.given("shuffle") is False:
        keras = (
            "model.fit still changed the order of the batches (its own shuffle=True is the default); evaluate and "
            "predict did not."
        )
        yield Finding("shuffle=False", keras, "fit(flow) leaves that to Keras; fit(flow.dataset) keeps the order.")
    elif case.method != _ARRAYS and case.leaves_out("shuffle") and case.given("subset") != "training":
        keras = "On by default: predict(flow) answered in a random order, which filenames and classes do not follow."
        yield Finding("shuffle=True", keras, "The same; give shuffle=False to a flow for predict.")


def _saving(case: Case) -> Iterator[Finding]:
    if not case.given("save_to_dir"):
        return
    keras = (
        "Each image was stretched to its own lowest and highest level before it was written, and the random part of "
        "the file names changed all later draws."
    )
    ours = "Stretched as well; the names have random numbers of their own and change no draws."
    yield Finding(f"save_to_dir={case.given('save_to_dir')!r}", keras, ours)


FLOW_RULES = (
    _which_validation,
    _no_subset,
    _no_split,
    _validation_augmented,
    _weights,
    _files,
    _no_images,
    _folders,
    _binary,
    _text_labels,
    _keywords,
    _size,
    _order,
    _seed,
    _saving,
)
