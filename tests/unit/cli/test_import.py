"""Commands `umg import`."""

from pathlib import Path

from typer.testing import CliRunner, Result

from umg_grpc.cli.commands import app

CONFIG = """
model_list:
  - {model_name: m, litellm_params: {model: openai/gpt-5.6-sol, api_key: os.environ/OPENAI_API_KEY}}
litellm_settings: {cache: true}
"""


def umg(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"OPENAI_API_KEY": "k"})


def test_a_config_is_converted_to_a_file_that_check_accepts(tmp_path: Path) -> None:
    source, output = tmp_path / "config.yaml", tmp_path / "umg.yaml"
    source.write_text(CONFIG)
    result = umg("import", "litellm", str(source), "-o", str(output))
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "not converted: litellm_settings.cache: set `cache` of a model",
        "channels: 1, models: 1; check the file with `umg check`",
    ]
    assert output.stat().st_mode & 0o777 == 0o600
    assert umg("check", str(output)).stdout == f"{output}: fine; 1 channel, 1 model\n"
    output.write_text(
        "channels: [{name: a, protocols: [chat], base_url: 'https://api.openai.com/v1', models: [gpt-5.6-sol, 'gpt-*']}]"
    )
    assert umg("check", str(output)).stdout == f"{output}: fine; 1 channel, 1 model, 1 pattern of models\n"


def test_the_converted_config_is_printed_without_a_file_and_replaces_none(tmp_path: Path) -> None:
    source, output = tmp_path / "config.yaml", tmp_path / "umg.yaml"
    source.write_text(CONFIG)
    umg("import", "litellm", str(source), "-o", str(output))
    assert umg("import", "litellm", str(source)).stdout == output.read_text()
    again = umg("import", "litellm", str(source), "-o", str(output))
    assert (again.exit_code, again.stderr) == (1, f"umg: {output} exists; name another file\n")


def test_channels_are_converted_to_standard_output(tmp_path: Path) -> None:
    source = tmp_path / "channels.json"
    source.write_text(
        '{"success": true, "data": [{"type": 43, "name": "deep", "models": "deepseek-chat", "key": "k"}]}'
    )
    result = umg("import", "new-api", str(source))
    assert (result.exit_code, "provider: deepseek" in result.stdout) == (0, True)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "config.yaml"
    source.write_text("channels: []")
    for name in ("litellm", "new-api"):
        result = umg("import", name, str(source))
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"umg: {source}: expected ")
    assert umg("import", "litellm", str(tmp_path / "absent")).exit_code == 2
