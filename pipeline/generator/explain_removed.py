"""How to spell anew what Keras 3 does not have any more."""

from __future__ import annotations

from pipeline.generator.explain_calls import RemovedCall
from pipeline.generator.explain_case import Finding

__all__ = ["explain_removed"]

_SENTENCES = {
    "fit_generator": ("Removed; Keras 2 takes it with a warning.", "model.fit(flow, ...), with the same arguments."),
    "evaluate_generator": ("Removed; Keras 2 takes it with a warning.", "model.evaluate(flow, ...)."),
    "predict_generator": ("Removed; Keras 2 takes it with a warning.", "model.predict(flow, ...)."),
    "lr": (
        "Refused by Keras 3. Keras 2.15 only logs a line and ignores it: it trains with the optimizer's default rate.",
        "learning_rate={value}.",
    ),
    "workers": (
        "Refused by Keras 3: arguments of a queue that it has no more.",
        "Leave them out; a flow decodes on all cores (parallel= and prefetch= of the flow method say how many).",
    ),
    "import": (
        "Keras 3's own package has no ImageDataGenerator; tensorflow.keras.preprocessing.image still has it.",
        "from pipeline import ImageDataGenerator.",
    ),
}


def explain_removed(call: RemovedCall) -> Finding:
    """What became of a call, and how to spell it now; here `ours` works on Keras 2 and 3."""
    setting = f"line {call.line}: {call.text}"
    if call.kind == "period":
        return Finding(setting, "Refused by Keras 3; Keras 2.15 follows it with a warning.", _period(call.value))
    keras, ours = _SENTENCES[call.kind]
    return Finding(setting, keras, ours.format(value=repr(call.value)))


def _period(value: object) -> str:
    if value == 1:
        return "Leave it out: save_freq='epoch', the default, saves after each epoch."
    return f"save_freq={value!r} * len(flow), which counts batches; 'epoch', the default, saves after each epoch."
