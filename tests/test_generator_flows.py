"""Flows as a training script uses them, beside those of Keras's real generator on the same images."""

import logging
import warnings
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from PIL import Image

from pipeline import BadFilesError
from pipeline.generator import ImageDataGenerator, Iterator, NumpyArrayIterator

Keras = tf.keras.preprocessing.image.ImageDataGenerator
KERAS_2 = tf.__version__.startswith("2.15")
SIZE = (12, 10)
RANDOM = {"rotation_range": 20, "horizontal_flip": True, "brightness_range": (0.6, 1.2), "zoom_range": 0.2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of three classes, some in nested folders, as PNG and JPEG."""
    top = tmp_path_factory.mktemp("classes")
    numbers = np.random.default_rng(3)
    for name, count in (("b", 5), ("a", 6), ("Z", 3)):
        (top / name / "deep").mkdir(parents=True)
        for index in range(count):
            place = top / name / ("deep" if index == 2 else ".") / f"im{index}.{'jpg' if index % 2 else 'png'}"
            Image.fromarray(numbers.integers(0, 256, (14 + index, 11, 3), dtype=np.uint8)).save(place)
    return top


@pytest.fixture(scope="module")
def frame(folder):
    paths = sorted(str(path.relative_to(folder)) for path in folder.rglob("im*"))
    numbers = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "file": paths,
            "class": [path[0] for path in paths],
            "tags": [["x"] if path[0] == "a" else ["x", "y"] for path in paths],
            "score": numbers.normal(size=len(paths)),
            "other": numbers.integers(0, 9, len(paths)),
            "weight": numbers.uniform(size=len(paths)),
        },
        index=np.arange(len(paths)) * 3 + 100,
    )


def assert_same(ours, theirs):
    """The same structure, dtypes, shapes and values."""
    if isinstance(theirs, tuple | list):
        assert type(ours) is type(theirs)
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other)
        return
    assert isinstance(ours, np.ndarray)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def both(method, *arguments, generator=None, **keywords):
    """The same flow of both classes."""
    generator = generator or {}
    return tuple(getattr(kind(**generator), method)(*arguments, **keywords) for kind in (ImageDataGenerator, Keras))


@pytest.mark.parametrize("class_mode", ["categorical", "sparse", "input", None])
def test_a_directory_in_order_is_kerass(folder, class_mode, capsys):
    ours, theirs = both(
        "flow_from_directory", folder, target_size=SIZE, class_mode=class_mode, batch_size=4, shuffle=False
    )
    said = capsys.readouterr().out.splitlines()
    assert said[0] == said[1] == "Found 14 images belonging to 3 classes."
    assert len(ours) == len(theirs) == 4
    for index in (0, 3, 1):
        assert_same(ours[index], theirs[index])
    for _ in range(6):  # into the second epoch
        assert_same(next(ours), next(theirs))
    names = ("samples", "n", "batch_size", "class_indices", "num_classes", "filenames", "filepaths", "image_shape",
             "target_size", "color_mode", "class_mode", "data_format", "dtype", "batch_index", "total_batches_seen",
             "interpolation", "subset", "split", "sample_weight", "white_list_formats",
             "keep_aspect_ratio")  # fmt: skip
    for name in names:
        assert getattr(ours, name) == getattr(theirs, name), name
    np.testing.assert_array_equal(ours.classes, theirs.classes)
    np.testing.assert_array_equal(ours.labels, theirs.labels)
    assert ours.classes.dtype == theirs.classes.dtype


@pytest.mark.parametrize(
    ("class_mode", "y_col"),
    [
        ("categorical", "class"),
        ("categorical", "tags"),
        ("sparse", "class"),
        ("raw", "score"),
        ("raw", ["score", "other"]),
        ("multi_output", ["score", "other"]),
        ("input", "class"),
        (None, "class"),
    ],
)
@pytest.mark.parametrize("weight_col", [None, "weight"])
def test_a_dataframe_in_order_is_kerass(folder, frame, class_mode, y_col, weight_col):
    ours, theirs = both(
        "flow_from_dataframe", frame, folder, "file", y_col, weight_col, target_size=SIZE, class_mode=class_mode,
        batch_size=5, shuffle=False,
    )  # fmt: skip
    assert len(ours) == len(theirs) == 3
    for index in range(3):
        assert_same(ours[index], theirs[index])
    assert ours.filenames == theirs.filenames
    assert ours.filepaths == theirs.filepaths
    for name in ("classes", "class_indices"):
        assert getattr(ours, name, "none") == getattr(theirs, name, "none")
    assert not hasattr(ours, "num_classes")


def test_binary_labels_of_two_classes(folder, frame):
    two = frame[frame["class"] != "Z"]
    ours, theirs = both(
        "flow_from_dataframe", two, folder, "file", target_size=SIZE, class_mode="binary", shuffle=False
    )
    assert_same(ours[0], theirs[0])
    ours, theirs = both(
        "flow_from_directory", folder, target_size=SIZE, classes=["b", "a"], class_mode="binary", shuffle=False
    )
    assert_same(ours[0], theirs[0])
    assert ours.class_indices == {"b": 0, "a": 1}


@pytest.mark.parametrize("subset", ["training", "validation"])
def test_subsets_are_kerass(folder, frame, subset):
    keywords = {"target_size": SIZE, "shuffle": False, "subset": subset, "generator": {"validation_split": 0.4}}
    ours, theirs = both("flow_from_directory", folder, **keywords)
    assert ours.filenames == theirs.filenames
    mixed = frame.sample(frac=1, random_state=1)
    ours, theirs = both("flow_from_dataframe", mixed, folder, "file", **keywords)
    assert ours.filenames == theirs.filenames
    x, y = np.arange(10 * 48.0).reshape(10, 4, 4, 3), np.tile([0, 1], 5)
    ours, theirs = both("flow", x, y, shuffle=False, subset=subset, generator={"validation_split": 0.4})
    assert_same(ours[0], theirs[0])


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_arrays_in_order_are_kerass(dtype):
    x = np.random.default_rng(0).uniform(0, 255, (11, 6, 7, 3)).astype(dtype)
    misc, y, weights = np.arange(22).reshape(11, 2), np.arange(11), np.linspace(0, 1, 11)
    for arguments, keywords in (
        ((x,), {}),
        ((x, y), {}),
        ((x, y), {"sample_weight": weights}),
        (((x, misc), y), {}),
        (((x, [misc, y]), y), {"sample_weight": weights}),
    ):
        ours, theirs = both("flow", *arguments, batch_size=4, shuffle=False, **keywords)
        for index in range(3):
            assert_same(ours[index], theirs[index])
        assert_same(ours.x, theirs.x)


def test_weights_are_cut_with_the_subset_unless_kerass_fault_is_wanted():
    x, y, weights = np.zeros((10, 4, 4, 3)), np.tile([0, 1], 5), np.arange(10.0)
    for exact, expected in ((False, [4, 5, 6, 7, 8, 9]), (True, [0, 1, 2, 3, 4, 5])):
        generator = ImageDataGenerator(validation_split=0.4, keras_exact=exact)
        flow = generator.flow(x, y, sample_weight=weights, shuffle=False, subset="training")
        assert flow[0][2].tolist() == expected


def test_an_epoch_holds_every_sample_once_in_an_order_of_its_own(folder):
    flow = ImageDataGenerator().flow_from_directory(folder, target_size=SIZE, class_mode="sparse", batch_size=4, seed=2)
    x = np.arange(14 * 3.0).reshape(14, 1, 1, 3)
    arrays = ImageDataGenerator().flow(x, np.arange(14), batch_size=4, seed=2)
    orders = [np.concatenate([next(arrays)[1] for _ in range(4)]).tolist() for _ in range(3)]
    assert all(sorted(order) == list(range(14)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    labels = np.concatenate([next(flow)[1] for _ in range(4)])
    np.testing.assert_array_equal(labels, flow.classes[orders[0]])  # the seed alone gives the order
    np.testing.assert_array_equal(flow.index_array, orders[0])


def test_a_batch_is_the_same_by_next_by_index_and_from_the_dataset(folder):
    def flow(**speed):
        generator = ImageDataGenerator(**RANDOM)
        return generator.flow_from_directory(folder, target_size=SIZE, batch_size=4, seed=9, **speed)

    taken = flow()
    epochs = [[next(taken) for _ in range(4)] for _ in range(2)]
    indexed = flow(prefetch=0, parallel=1)
    for epoch in epochs:
        indexed.on_epoch_end()
        for index in (2, 0, 3, 1):
            assert_same(indexed[index], epoch[index])
    cached = flow(cache="ram").dataset
    assert cached.cardinality() == 4
    for epoch in epochs:
        for batch, expected in zip(cached, epoch, strict=True):
            assert_same(tuple(part.numpy() for part in batch), expected)
    assert not np.array_equal(epochs[0][0][0], epochs[1][0][0])


def test_two_flows_of_one_seed_change_images_and_masks_alike():
    x = np.random.default_rng(0).uniform(0, 255, (9, 8, 8, 3)).astype("float32")
    images, masks = (ImageDataGenerator(**RANDOM).flow(x, batch_size=4, seed=5) for _ in range(2))
    for _ in range(5):
        np.testing.assert_array_equal(next(images), next(masks))


def test_without_a_seed_flows_differ():
    x = np.random.default_rng(0).uniform(0, 255, (30, 4, 4, 3))
    first, second = (next(ImageDataGenerator().flow(x)) for _ in range(2))
    assert not np.array_equal(first, second)


def test_index_errors_and_positions():
    flow = ImageDataGenerator().flow(np.zeros((10, 4, 4, 3)), batch_size=4, shuffle=False)
    with pytest.raises(ValueError, match="Asked to retrieve element 3, but the Sequence has length 3"):
        flow[3]
    assert len(flow[-5]) == 0
    assert iter(flow) is flow
    for position in (1, 2, 0, 1):
        next(flow)
        assert flow.batch_index == position
    flow.reset()
    assert flow.batch_index == 0
    assert flow.next().shape == (4, 4, 4, 3)
    assert flow.total_batches_seen == 6


def test_validation_images_are_not_augmented_unless_kerass_fault_is_wanted(folder):
    for exact in (False, True):
        generator = ImageDataGenerator(rotation_range=90, validation_split=0.4, keras_exact=exact)
        plain = ImageDataGenerator(validation_split=0.4)
        keywords = {"target_size": SIZE, "subset": "validation", "shuffle": False, "seed": 1}
        changed = generator.flow_from_directory(folder, **keywords)[0][0]
        assert np.array_equal(changed, plain.flow_from_directory(folder, **keywords)[0][0]) is not exact


@pytest.mark.parametrize("data_format", ["channels_first", "channels_last"])
@pytest.mark.parametrize(
    "generator",
    [
        {"rescale": 1 / 255},
        {"samplewise_center": True, "samplewise_std_normalization": True},
        {"featurewise_center": True, "featurewise_std_normalization": True},
        {"zca_whitening": True, "featurewise_center": True},
        {"preprocessing_function": lambda image: image[..., ::-1] * 2},
        {"preprocessing_function": lambda image: image + image.mean(), "rescale": 0.5, "samplewise_center": True},
    ],
    ids=lambda arguments: "-".join(arguments),
)
def test_standardized_batches_are_kerass(generator, data_format):
    shape = (12, 3, 6, 5) if data_format == "channels_first" else (12, 6, 5, 3)
    x = np.random.default_rng(0).uniform(0, 255, shape).astype("float32")
    pair = [kind(**generator, data_format=data_format) for kind in (ImageDataGenerator, Keras)]
    flows = []
    for one in pair:
        one.fit(x)
        flows.append(one.flow(x, batch_size=5, shuffle=False))
    np.testing.assert_allclose(flows[0][1], flows[1][1], rtol=1e-4, atol=1e-3)


def test_functions_of_keras_applications_run_as_tensors(folder):
    for module in (tf.keras.applications.mobilenet_v2, tf.keras.applications.vgg16):
        ours, theirs = both(
            "flow_from_directory", folder, target_size=SIZE, shuffle=False,
            generator={"preprocessing_function": module.preprocess_input},
        )  # fmt: skip
        assert_same(ours[0], theirs[0])
        assert ours.is_compiled


@pytest.mark.parametrize("order", [0, 2, 3])
def test_exact_augmentation_of_any_order_is_what_the_draws_say(order):
    x = np.random.default_rng(0).uniform(0, 255, (6, 9, 14, 3)).astype("float32")
    generator = ImageDataGenerator(**RANDOM, interpolation_order=order, keras_exact=True, channel_shift_range=20)
    flow = generator.flow(x, batch_size=6, shuffle=False, seed=8)
    keras = Keras(**RANDOM, interpolation_order=order, channel_shift_range=20)
    expected = [
        keras.apply_transform(image, parameters) for image, parameters in zip(x, flow.parameters(1), strict=True)
    ]
    off = np.abs(flow[0] - expected) > 0.05
    assert off.mean() < 0.02  # levels next to a border of nearest or of Keras's 8 bits


def test_a_subclass_is_asked_for_every_image():
    class Own(ImageDataGenerator):
        def standardize(self, x):
            return super().standardize(x) + 1000

    x = np.zeros((3, 4, 4, 3), "float32")
    assert (Own().flow(x)[0] == 1000).all()


def test_a_generator_that_is_fitted_later_or_changed_is_followed():
    x = np.random.default_rng(0).uniform(0, 255, (8, 4, 4, 3)).astype("float32")
    generator = ImageDataGenerator(featurewise_center=True)
    flow = generator.flow(x, shuffle=False)
    with pytest.warns(UserWarning, match="hasn't been fit on any training data"):
        np.testing.assert_array_equal(flow[0], x)
    generator.fit(x)
    np.testing.assert_allclose(flow[0], x - x.mean((0, 1, 2)), atol=1e-3)
    generator.mean = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(flow[0], x - [1, 2, 3], atol=1e-3)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8"])
def test_batches_have_the_generators_dtype(dtype):
    x = np.random.default_rng(0).integers(0, 256, (5, 4, 4, 3)).astype(dtype)
    ours, theirs = both("flow", x, shuffle=False, generator={"dtype": dtype})
    assert_same(ours[0], theirs[0])
    assert next(ours).dtype == dtype


def test_images_are_saved_as_they_are_yielded(folder, tmp_path):
    flow = ImageDataGenerator(horizontal_flip=True).flow_from_directory(
        folder, target_size=SIZE, shuffle=False, seed=1, save_to_dir=tmp_path, save_prefix="aug", class_mode=None
    )
    batch = next(flow)
    names = sorted(tmp_path.iterdir(), key=lambda path: int(path.name.split("_")[1]))
    assert len(names) == 14
    assert all(path.name.startswith(f"aug_{index}_") and path.suffix == ".png" for index, path in enumerate(names))
    saved = np.asarray(Image.open(names[0]), float)
    stretched = (batch[0] - batch[0].min()) / (batch[0].max() - batch[0].min()) * 255
    np.testing.assert_allclose(saved, stretched, atol=1)
    with pytest.raises(FileNotFoundError, match=r"save_to_dir=.*nowhere' is no folder"):
        ImageDataGenerator().flow(np.zeros((1, 4, 4, 3)), save_to_dir=str(tmp_path / "nowhere"))


def test_a_broken_file_is_named_by_every_way(folder, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (9, 9)).save(tmp_path / name / "good.png")
    (tmp_path / "b" / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n but no more")
    flow = ImageDataGenerator().flow_from_directory(tmp_path, target_size=SIZE, shuffle=False, batch_size=1)
    flow[0]
    with pytest.raises(BadFilesError, match=r"bad\.png is truncated or damaged"):
        flow[1]
    next(flow)
    with pytest.raises(BadFilesError, match=r"bad\.png is truncated or damaged"):
        next(flow)


def test_many_flows_are_no_retracing_to_tensorflow(folder):
    told = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    tf.get_logger().addHandler(handler)
    try:
        for number in range(7):
            flow = ImageDataGenerator(**RANDOM).flow_from_directory(
                str(folder), target_size=(12 + number, 10), batch_size=4, seed=3
            )
            next(flow), flow[1]
            next(iter(flow.dataset))
    finally:
        tf.get_logger().removeHandler(handler)
    assert told == []


def test_threads_get_whole_batches(folder):
    flow = ImageDataGenerator(**RANDOM).flow_from_directory(folder, target_size=SIZE, batch_size=3, class_mode="sparse")
    expected = [flow[index] for index in range(5)]
    with ThreadPoolExecutor(4) as pool:
        for index, batch in zip([0, 1, 2, 3, 4] * 3, pool.map(flow.__getitem__, [0, 1, 2, 3, 4] * 3), strict=True):
            assert_same(batch, expected[index])
        labels = np.concatenate([batch[1] for batch in pool.map(lambda _: next(flow), range(5))])
    np.testing.assert_array_equal(np.sort(labels), np.sort(flow.classes))


@pytest.mark.skipif("fork" not in __import__("multiprocessing").get_all_start_methods(), reason="workers are forked")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_worker_gets_the_same_batches_without_tensorflow(folder):
    flow = ImageDataGenerator(**RANDOM).flow_from_directory(folder, target_size=SIZE, batch_size=4, seed=2)
    expected = flow[1]
    context = get_context("fork")
    receiver, sender = context.Pipe(False)

    def work():
        sender.send(flow[1])

    worker = context.Process(target=work)
    worker.start()
    assert receiver.poll(60), "the worker hangs"
    images, labels = receiver.recv()
    worker.join()
    np.testing.assert_allclose(images, expected[0], atol=0.05)
    np.testing.assert_array_equal(labels, expected[1])


def small_model(classes=3):
    model = tf.keras.Sequential([tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(classes, "softmax")])
    model.compile("sgd", "categorical_crossentropy", metrics=["accuracy"])
    return model


def test_flows_go_straight_into_keras(folder):
    generator = ImageDataGenerator(**RANDOM, rescale=1 / 255, validation_split=0.3)
    train, validation = (
        generator.flow_from_directory(folder, target_size=SIZE, batch_size=4, seed=1, subset=subset)
        for subset in ("training", "validation")
    )
    model = small_model()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = model.fit(
            train, steps_per_epoch=len(train), epochs=2, validation_data=validation, class_weight={0: 1, 1: 2, 2: 1},
            verbose=0,
        )  # fmt: skip
        model.evaluate(validation, verbose=0)
        assert model.predict(validation, verbose=0).shape == (2, 3)
    assert not [str(warning.message) for warning in caught if "pipeline" in warning.filename]
    assert len(history.history["val_loss"]) == 2
    model.fit(train.dataset, epochs=2, validation_data=validation.dataset, shuffle=False, verbose=0)


def test_several_inputs_outputs_and_weights_train_from_flow_and_dataset(folder, frame):
    x, misc = np.random.default_rng(0).uniform(size=(10, 6, 6, 3)), np.random.default_rng(1).uniform(size=(10, 2))
    image, more = tf.keras.Input((6, 6, 3)), tf.keras.Input((2,))
    merged = tf.keras.layers.Concatenate()([tf.keras.layers.GlobalAveragePooling2D()(image), more])
    two_inputs = tf.keras.Model([image, more], tf.keras.layers.Dense(1)(merged))
    two_inputs.compile("sgd", "mse")
    flow = ImageDataGenerator().flow((x, misc), np.zeros(10), batch_size=4, sample_weight=np.ones(10))
    two_inputs.fit(flow.dataset, verbose=0, shuffle=False)
    pooled = tf.keras.layers.GlobalAveragePooling2D()(image := tf.keras.Input((*SIZE, 3)))
    two_outputs = tf.keras.Model(image, [tf.keras.layers.Dense(1)(pooled), tf.keras.layers.Dense(1)(pooled)])
    two_outputs.compile("sgd", ["mse", "mse"])
    flow = ImageDataGenerator(rescale=1 / 255).flow_from_dataframe(
        frame, folder, "file", ["score", "other"], target_size=SIZE, class_mode="multi_output"
    )
    two_outputs.fit(flow.dataset, verbose=0, shuffle=False)
    if KERAS_2:  # Keras 3 takes no lists from any iterator, Keras's own included
        two_outputs.evaluate(flow, verbose=0)


def test_a_persons_own_iterator_can_stand_on_the_base_class():
    class Squares(Iterator):
        def _get_batches_of_transformed_samples(self, index_array):
            return index_array**2

    squares = Squares(5, batch_size=2, shuffle=False, seed=None)
    assert [next(squares).tolist() for _ in range(4)] == [[0, 1], [4, 9], [16], [0, 1]]
    assert squares[1].tolist() == [4, 9]


def test_the_iterator_class_takes_kerass_arguments():
    flow = NumpyArrayIterator(np.zeros((4, 3, 3, 3)), None, ImageDataGenerator(), batch_size=2)
    assert flow[0].shape == (2, 3, 3, 3)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"cache": "disc"}, "cache='disc': choose one of 'off', 'encoded', 'ram', 'disk'"),
        ({"prefetch": -1}, "prefetch=-1: give 'auto' or a whole number of 0 or more"),
        ({"parallel": 0, "decode": "quick"}, "decode='quick'.*parallel=0"),
    ],
)
def test_what_ours_has_beside_is_checked(folder, keywords, message):
    with pytest.raises(ValueError, match=message):
        ImageDataGenerator().flow_from_directory(folder, **keywords)
