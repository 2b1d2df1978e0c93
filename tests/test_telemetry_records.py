import pytest
from telemetry_made_up import mark

from telemetry.records import (
    LineWriter,
    Mark,
    Sample,
    SampleTail,
    group_phases,
    mark_line,
    parse_lines,
    parse_mark,
    parse_sample,
    sample_line,
)


def marks(*lines: dict) -> list[Mark]:
    return [Mark(**line) for line in lines]


def test_a_mark_and_a_sample_come_back_as_they_were_written():
    one = Mark(event="end", session=1, monotonic_seconds=3.5, epoch=2, phase="train", values={"rss_mib": None})
    assert parse_mark(mark_line(one)) == one
    sample = Sample(session=0, monotonic_seconds=1.25, values={"rss_mib": 1.5, "x": None}, reasons={"x": "why"})
    assert parse_sample(sample_line(sample)) == sample


def test_a_loss_that_is_not_a_number_survives():
    one = Mark(event="end", session=0, monotonic_seconds=0.0, epoch=1, phase="train", metrics={"loss": float("nan")})
    assert str(parse_mark(mark_line(one)).metrics["loss"]) == "nan"


@pytest.mark.parametrize("line", ['{"event": "begin", "sess', "[]", "{}", "3", '{"session": 0}', "\x00"])
def test_a_damaged_line_is_counted_and_left_out(line):
    good = mark_line(Mark(event="begin", session=0, monotonic_seconds=0.0, epoch=1, phase="train"))
    records, unreadable = parse_lines(f"{good}\n{line}\n{good}", parse_mark)
    assert (len(records), unreadable) == (2, 1)


def test_a_mark_of_an_unknown_phase_is_not_a_mark():
    with pytest.raises(ValueError, match="phase 'test'"):
        parse_mark('{"event": "begin", "session": 0, "monotonic_seconds": 0, "epoch": 1, "phase": "test"}')


def test_phases_come_in_the_order_of_epoch_and_phase_with_metrics_that_came_late():
    records = group_phases(
        marks(
            mark("begin", 1, "train", 0.0),
            mark("warmup_end", 1, "train", 1.0),
            mark("end", 1, "train", 2.0, metrics={"loss": 3.0}),
            mark("begin", 1, "validation", 2.0),
            mark("end", 1, "validation", 3.0),
            mark("metrics", 1, "train", 3.0, metrics={"accuracy": 0.5}),
            mark("begin", 2, "train", 4.0),
        )
    )
    assert [(record.epoch, record.phase) for record in records] == [(1, "train"), (1, "validation"), (2, "train")]
    assert records[0].metrics == {"loss": 3.0, "accuracy": 0.5}
    assert records[0].warmup_end.monotonic_seconds == 1.0
    assert records[2].end is None


def test_a_resume_drops_what_lies_behind_the_epochs_it_keeps_and_the_newest_record_counts():
    first = [
        mark(event, epoch, "train", epoch + at) for epoch in (1, 2, 3) for event, at in (("begin", 0), ("end", 0.5))
    ]
    resumed = [
        mark("resume", 1, None, 10.0, session=1),
        mark("begin", 2, "train", 11.0, session=1),
        mark("end", 2, "train", 12.0, session=1),
    ]
    records = group_phases(marks(*first, *resumed))
    assert [(record.epoch, record.begin.session) for record in records] == [(1, 0), (2, 1)]


def test_a_phase_that_was_cut_off_before_a_resume_does_not_come_back():
    records = group_phases(marks(mark("begin", 1, "train", 0.0), mark("resume", 1, None, 9.0, session=1)))
    assert records == ()


def test_a_writer_starts_a_new_line_behind_one_that_was_cut_off(tmp_path):
    path = tmp_path / "lines"
    path.write_text('{"whole": 1}\n{"cut')
    writer = LineWriter(path)
    writer.write("next")
    writer.close()
    assert path.read_text() == '{"whole": 1}\n{"cut\nnext\n'


def test_the_tail_gives_each_whole_line_once(tmp_path):
    tail = SampleTail(tmp_path / "samples.jsonl")
    assert tail.read() == []
    lines = [sample_line(Sample(session=0, monotonic_seconds=float(at), values={})) for at in range(3)]
    with open(tmp_path / "samples.jsonl", "w") as file:
        file.write(lines[0] + "\n" + lines[1][:10])
        file.flush()
        assert [sample.monotonic_seconds for sample in tail.read()] == [0.0]
        file.write(lines[1][10:] + "\n" + lines[2] + "\n")
        file.flush()
    assert [sample.monotonic_seconds for sample in tail.read()] == [1.0, 2.0]
