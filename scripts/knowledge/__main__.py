"""Write the generated data files of `umg_grpc/knowledge/data` again, and print the changes."""

from scripts.knowledge.data_files import changes, generated, licences
from umg_grpc.knowledge.data_files import DATA_FOLDER

LICENCES = DATA_FOLDER / "LICENSES.txt"


def main() -> None:
    """Write the files, as made from the pinned packages."""
    for name, text in generated().items():
        path = DATA_FOLDER / f"{name}.json"
        before = path.read_text() if path.exists() else "[]"
        path.write_text(text)
        print(f"{path.name}: {changes(before, text)}")
    LICENCES.write_text(licences())


if __name__ == "__main__":
    main()
