"""Check of image requests against the rules of vendors for their models (`knowledge/media_model_rules.py`)."""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.image_model_rules import invalid_value, one_of, placed_images
from umg_grpc.knowledge.media_model_rules import MediaModel, Value, is_among, media_model
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.images.providers.response_decoding import OUTPUT_NAMES

SIZE_FORM = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})", re.ASCII)


def check_values(protocol: str, model: str, request: pb.GenerateImageRequest, notes: RequestNotes = NO_NOTES) -> None:
    """Raise UmgError(INVALID_FIELD) for the first value of a request that the provider's `model` does not accept in a
    protocol. A model without a row has no rules. `notes`: facts about the caller's body.
    """
    if (row := media_model(protocol, model)) is None:
        return
    check = _Check(row, notes)
    stated = {field.name: value for field, value in request.ListFields() if field.name not in row.without}
    for name, value in stated.items():
        check.value(name, value)
    check.conditions(stated)
    images = list(placed_images(request))
    if len(images) > (most := row.most_media.get("image", len(images))):
        problem = f"this model takes at most {most} input images, not {len(images)}; send fewer"
        raise invalid_value(images[most].path, problem)


class _Check(NamedTuple):
    """Rules of a model, and facts about the caller's body, in which fields may have other names."""

    row: MediaModel
    notes: RequestNotes

    def value(self, name: str, value: Value) -> None:
        """Raise UmgError(INVALID_FIELD) for a value that the model's row does not allow."""
        row = self.row
        if name == "size":
            value = str(value).replace("*", "x")  # each protocol writes its own sign
        if name in row.values and not is_among(value, row.values[name]):
            if row.pixels is None or name != "size":
                raise self._invalid(name, f"expected {self._choices(name, row.values[name])}; correct it")
            self._pixels(str(value))
        if name in row.ranges and not row.ranges[name][0] <= int(value) <= row.ranges[name][1]:
            raise self._invalid(name, f"expected {row.ranges[name][0]} to {row.ranges[name][1]}; correct it")

    def _pixels(self, size: str) -> None:
        if (found := SIZE_FORM.fullmatch(size)) is None:
            choices = self._choices("size", self.row.values["size"])
            raise self._invalid("size", f"expected {choices}, or pixels such as `1536x864`; correct it")
        if self.row.pixels is not None and (problem := self.row.pixels.problem(int(found[1]), int(found[2]))):
            raise self._invalid("size", f"{problem}; correct it")

    def conditions(self, stated: Mapping[str, Value]) -> None:
        """Raise UmgError(INVALID_FIELD) for a field in `stated` that contradicts another one; absent fields do not."""
        for rule in self.row.conditions:
            value, needed = stated.get(rule.parameter), stated.get(rule.needs)
            if value is None or needed is None or not is_among(value, rule.values) or is_among(needed, rule.among):
                continue
            choices, other = self._choices(rule.needs, rule.among), self._name(rule.parameter)
            given = self._choices(rule.parameter, [value])
            raise self._invalid(rule.needs, f"expected {choices} with `{other}` {given}; correct it")

    def _name(self, name: str) -> str:
        return self.notes.opaque_paths.get(name, name)

    def _choices(self, name: str, values: Collection[Value]) -> str:
        texts = [str(value) for value in values]
        is_short = self._name(name) == "output_format"
        return one_of([OUTPUT_NAMES.get(text, text) for text in texts] if is_short else texts)

    def _invalid(self, name: str, problem: str) -> UmgError:
        return invalid_value(self._name(name), problem)
