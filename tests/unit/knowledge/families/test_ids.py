"""Model ids, and the family, tier and suffix that each one names."""

import pytest

from umg_grpc.knowledge.families.text_model_rules import (
    TEXT_FAMILIES,
    FamilyModel,
    Suffix,
    family_model,
    family_of,
    split_suffix,
)

SUFFIXES = {
    "famG-2.5-pro-thinking": Suffix("thinking"),
    "famG-2.5-pro-thinking-1024": Suffix("budget", 1024),
    "famG-2.5-pro-thinking-0": Suffix("budget", 0),
    "famG-2.5-pro-nothinking": Suffix("nothinking"),
    "famG-2.5-pro-thinking-low": Suffix("low"),
    "famG-2.5-pro-thinking-high": Suffix("high"),
}


@pytest.mark.parametrize(("model", "suffix"), SUFFIXES.items())
def test_the_five_suffix_forms_are_split_from_the_base_id(model: str, suffix: Suffix) -> None:
    assert split_suffix(model) == ("famG-2.5-pro", suffix)


@pytest.mark.parametrize(
    "end",
    [
        *(
            "",
            "-thinking-",
            "-thinking--1",
            "-thinking-1.5",
            "-thinking-medium",
            "-thinking-LOW",
            "-Thinking",
            "thinking",
        ),
        *("-nothinking-5", "-thinking-low-5", "-thinking-\u0661", "-thinking\n", "-thinking-" + "9" * 19),
    ],
)
def test_any_other_ending_is_no_suffix(end: str) -> None:
    assert split_suffix(f"famG-2.5-pro{end}") is None


def test_only_the_last_suffix_is_split_off() -> None:
    assert split_suffix("a-thinking-nothinking") == ("a-thinking", Suffix("nothinking"))
    assert split_suffix("-thinking") is None


@pytest.mark.parametrize(
    ("ids", "family"),
    [
        *((((f"{family}-1", "x"), family)) for family in TEXT_FAMILIES),
        (("mine", "famC-sonnet-4-5"), "famC"),
        (("famX-4", "famO-5"), "famX"),
        (("famZ-1", "famg-2"), ""),
        (("famG", "my-famG-2"), ""),
    ],
)
def test_a_documented_prefix_determines_the_family(ids: tuple[str, ...], family: str) -> None:
    assert family_of(*ids) == family


@pytest.mark.parametrize(
    ("ids", "levels", "largest"),
    [
        (("famG-2.5-flash",), False, 24576),
        (("famG-2.5-pro",), False, 32768),
        (("famG-3-pro",), True, 32768),
        (("famG-3-flash-preview",), True, 24576),
        (("famG-3.1-pro",), True, 32768),
        (("famG-30",), False, 32768),
        (("mine", "gemini-3-pro"), True, 32768),
        (("mine", "gemini-2.5-flash"), False, 24576),
        (("famG-2.5-like-3", "famG-3-pro"), False, 32768),
        (("smart", "fast"), False, 32768),
    ],
)
def test_readings_8_the_id_of_a_famg_model_determines_its_tier(
    ids: tuple[str, ...], levels: bool, largest: int
) -> None:
    assert family_model("famG", *ids) == FamilyModel("famG", levels, largest)


def test_models_of_other_families_have_no_tier() -> None:
    assert family_model("famQ", "famQ-3-flash") == FamilyModel("famQ")
