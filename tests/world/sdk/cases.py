"""ToolInputs for every official client, independent of the format."""

import base64
import io

from PIL import Image

WEATHER = "get_weather"
TIME = "get_time"
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
    },
    "required": ["city", "unit", "days"],
    "additionalProperties": False,
}
DESCRIPTION = "The weather of a city"
WEATHER_QUESTION = f"Call {WEATHER} for Paris."
WEATHER_AND_TIME_QUESTION = f"Call {WEATHER} and {TIME} for Paris."
RESULT = "18 degrees and a light breeze"
SEARCH = "What is new in astronomy?"


def picture() -> bytes:
    """Return a PNG of 31 x 17 pixels."""
    data = io.BytesIO()
    Image.new("RGB", (31, 17), (200, 30, 30)).save(data, "PNG")
    return data.getvalue()


def picture_base64() -> str:
    return base64.b64encode(picture()).decode()


def check_arguments(arguments: object) -> None:
    """Check that the arguments are valid for `SCHEMA`."""
    assert isinstance(arguments, dict)
    assert set(arguments) == {"city", "unit", "days"}
    assert isinstance(arguments["city"], str)
    assert arguments["unit"] in {"celsius", "fahrenheit"}
    assert 1 <= arguments["days"] <= 7
